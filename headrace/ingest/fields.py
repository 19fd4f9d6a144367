"""The two fields of a record that the intake reads before the log: its key and its id.

What is read from a record depends on that record alone: a malformed neighbour cannot change it, and
the same bytes are read the same way when the ids are rebuilt from the log. A string is a `str`, a
whole number an `int` of any size, another number or a boolean its JSON text in `bytes`; anything
else, and every field of a malformed record, is None.
tests/ingest/test_fields.py checks this.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from headrace.core.errors import BadDefinition
from headrace.core.json_path import JsonPath
from headrace.define.definitions import StreamDefinition
from headrace.log.json_values import decode_json

Value = str | int | bytes | None
Fields = tuple[list[Value], list[Value]]  # the keys and the ids of some records
FieldReader = Callable[[Sequence[bytes]], Fields]

_Common = str | int | None
_ABSENT = msgspec.Raw(b"null")
_UNREADABLE = (ValueError, RecursionError)  # a msgspec or Unicode error is a ValueError


def field_reader(definition: StreamDefinition) -> FieldReader:
    """The function that reads keys and ids of this stream's records.

    Without a key or an id in the definition, that list is empty.
    """
    if definition.format == "csv":
        return _csv_reader(definition)
    paths = {
        role: _path(definition, name)
        for role, name in (("key", definition.key), ("id", definition.id))
        if name is not None
    }
    if any(len(path.steps) > 1 for path in paths.values()) or len({*paths.values()}) < len(paths):
        return _path_reader(paths)
    names = {role: path.field for role, path in paths.items()}
    return _json_reader(names) if names else lambda records: ([], [])


def _path(definition: StreamDefinition, name: str) -> JsonPath:
    """Where the events have a field: at the path of its column, or under its name."""
    column = definition.schema.stored.find(name)
    if column and column.path:
        return JsonPath.parse(column.path)
    return JsonPath((column.name if column else name,))


def _json_reader(names: dict[str, str]) -> FieldReader:
    """Record by record. Reading all lines in one call was not faster, and ignores where a line
    ends, so that two broken neighbours could pass for one event.
    """
    common = _decoder(names, _Common, None)
    raws = _decoder(names, msgspec.Raw, _ABSENT)

    def read_one(record: bytes) -> Any:
        try:
            return common.decode(record)
        except _UNREADABLE:
            return _read_rare(raws, names, record)

    def read(records: Sequence[bytes]) -> Fields:
        try:
            found: list[Any] = list(map(common.decode, records))
        except _UNREADABLE:  # one of them, so each is tried
            found = [read_one(record) for record in records]
        keys = [item.key for item in found] if "key" in names else []
        ids = [item.id for item in found] if "id" in names else []
        return keys, ids

    return read


def _path_reader(paths: dict[str, JsonPath]) -> FieldReader:
    """Record by record; one of the fields stands deeper than the others, or is both."""
    decoders = {
        field: msgspec.json.Decoder(
            msgspec.defstruct("Field", [("f", msgspec.Raw, _ABSENT)], rename={"f": field})
        )
        for field in {path.field for path in paths.values()}
    }

    def read_one(path: JsonPath, record: bytes) -> Value:
        try:
            raw: Any = decoders[path.field].decode(record)
            return _scalar(path.within(decode_json(raw.f)))
        except _UNREADABLE:
            return None

    def read(records: Sequence[bytes]) -> Fields:
        keys, ids = (
            [read_one(paths[role], record) for record in records] if role in paths else []
            for role in ("key", "id")
        )
        return keys, ids

    return read


def _scalar(value: Any) -> Value:
    if isinstance(value, bool | msgspec.Raw):
        return msgspec.json.encode(value)
    return value if isinstance(value, str | int) else None


def _decoder(names: dict[str, str], kind: Any, absent: Any) -> msgspec.json.Decoder[Any]:
    roles = [(role, kind, absent) for role in names]
    return msgspec.json.Decoder(msgspec.defstruct("Fields", roles, rename=names, gc=False))


class _Found(msgspec.Struct):
    key: Value = None
    id: Value = None


def _read_rare(raws: msgspec.json.Decoder[Any], names: dict[str, str], record: bytes) -> _Found:
    try:
        item = raws.decode(record)
        return _Found(**{role: _value(bytes(getattr(item, role))) for role in names})
    except _UNREADABLE:
        return _Found()


def _value(text: bytes) -> Value:
    if text[:1] in (b"{", b"["):
        return None
    try:
        value: Value = msgspec.json.decode(text, type=_Common)
        return value
    except msgspec.ValidationError:
        return text  # a fraction, a boolean, or a number of thousands of digits


def _csv_reader(definition: StreamDefinition) -> FieldReader:
    key = _csv_index(definition, definition.key, "key")
    identity = _csv_index(definition, definition.id, "id")

    def read(records: Sequence[bytes]) -> Fields:
        if key is None and identity is None:
            return [], []
        rows = [csv_row(record) for record in records]
        return _csv_column(rows, key), _csv_column(rows, identity)

    return read


def _csv_index(definition: StreamDefinition, name: str | None, role: str) -> int | None:
    if name is None:
        return None
    column = definition.schema.stored.find(name)
    if column is None:
        raise BadDefinition(
            f"the {role} '{name}' of stream '{definition.name}' is not one of its columns",
            detail="the stream reads CSV, which has only the declared columns.",
            hint=f"available columns: {', '.join(definition.schema.stored.names)}.",
            origin=definition.origin,
        )
    return definition.schema.stored.columns.index(column)


def _csv_column(rows: list[list[str]], index: int | None) -> list[Value]:
    if index is None:
        return []
    return [(row[index] or None) if index < len(row) else None for row in rows]


def csv_row(record: bytes) -> list[str]:
    """The fields of one CSV record; none if it cannot be read.

    >>> csv_row(b'1,"a, b",')
    ['1', 'a, b', '']
    """
    try:
        text = record.decode()
        if '"' not in text:
            return text.split(",")
        return next(csv.reader(io.StringIO(text, newline=""), strict=True), [])
    except (UnicodeDecodeError, csv.Error):
        return []
