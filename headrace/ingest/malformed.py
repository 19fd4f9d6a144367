"""An event as bytes, whole or broken in one of four ways that real producers have.

The ways take turns: cut off, a wrong type, a NOT NULL field missing, bytes that are not UTF-8.
Where a stream cannot be broken in one way (it has no NOT NULL column, say), the event is cut off
instead. tests/ingest/test_generator.py checks that each is broken.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

import msgspec

from headrace.core.schema import Schema
from headrace.define.definitions import StreamDefinition
from headrace.ingest.event_factory import Event

Encode = Callable[[Event], bytes]


def encoder(definition: StreamDefinition) -> Encode:
    """The function that writes an event in the stream's format."""
    if definition.format == "json":
        return msgspec.json.encode
    return lambda event: _csv_record(event, definition.schema.stored)


def malformed(event: Event, definition: StreamDefinition, turn: int) -> bytes:
    """The event, broken in the way whose turn it is."""
    encode = encoder(definition)
    return _WAYS[turn % len(_WAYS)](event, definition.schema.stored, encode)


def _cut_off(event: Event, schema: Schema, encode: Encode) -> bytes:
    record = encode(event)
    return record[: max(1, len(record) // 2)]


def _wrong_type(event: Event, schema: Schema, encode: Encode) -> bytes:
    typed = (c for c in schema.columns if c.type.name not in {"STRING", "VARIANT"})
    column = next((c for c in typed if not c.path), None)
    if column is None:
        return _cut_off(event, schema, encode)
    return encode({**event, column.name: f"no {column.type.name.lower()}"})


def _missing(event: Event, schema: Schema, encode: Encode) -> bytes:
    needed = (c for c in schema.columns if not c.nullable and c.default is None)
    column = next((c for c in needed if not c.path), None)
    if column is None:
        return _cut_off(event, schema, encode)
    return encode({name: value for name, value in event.items() if name != column.name})


def _no_utf8(event: Event, schema: Schema, encode: Encode) -> bytes:
    record = encode(event)
    text = record.find(b':"') + 2  # within the first string, if there is one
    return record[:text] + b"\xff" + record[text:] if text > 1 else b"\xff" + record


_WAYS = (_cut_off, _wrong_type, _missing, _no_utf8)


def _csv_record(event: Event, schema: Schema) -> bytes:
    row = io.StringIO()
    csv.writer(row, lineterminator="").writerow([_csv_text(event.get(n)) for n in schema.names])
    return row.getvalue().encode()


def _csv_text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()
