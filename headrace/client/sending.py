"""Sends events to a stream, in batches that are acknowledged one after the other.

One batch is in flight at a time, so the acknowledged events are always a prefix of the input. If a
later batch fails, the error has the length of that prefix.
tests/client/test_sending.py checks the batches and an error in the middle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any

import msgspec

from headrace.api.client import total
from headrace.api.service import Service
from headrace.core.errors import BadRequest, HeadraceError
from headrace.ingest.intake import Receipt

Event = dict[str, Any] | str | bytes
BATCH_EVENTS_MAX, BATCH_BYTES_MAX = 5_000, 1 << 20


def send(service: Service, stream: str, events: Iterable[Event]) -> Receipt:
    """Send all events; returns one receipt for them."""
    receipts: list[Receipt] = []
    try:
        for batch in batches(events):
            receipts.append(service.submit(stream, batch).result())
    except HeadraceError as error:
        if receipts:
            before = f"the first {total(receipts).accepted} events were accepted."
            error.detail = f"{error.detail} {before}" if error.detail else before
        raise
    return total(receipts)


def batches(events: Iterable[Event]) -> Iterator[list[bytes]]:
    """The events as records, in batches of one request each."""
    batch: list[bytes] = []
    size = 0
    for number, event in enumerate(_each(events), 1):
        record = _record(event, number)
        if batch and (len(batch) >= BATCH_EVENTS_MAX or size + len(record) > BATCH_BYTES_MAX):
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += len(record)
    if batch:
        yield batch


def _each(events: Iterable[Event]) -> Iterable[Event]:
    # Passing one event is a frequent mistake, and iterating it would send its keys.
    return [events] if isinstance(events, dict | str | bytes) else events


def _record(event: Event, number: int) -> bytes:
    if isinstance(event, bytes):
        return event
    if isinstance(event, str):
        return event.encode()
    try:
        return msgspec.json.encode(event, enc_hook=_plain)
    except (TypeError, ValueError) as error:
        raise BadRequest(f"event {number} cannot be written as JSON: {error}") from error


def _plain(value: Any) -> Any:
    """A JSON value for a value of pandas or numpy."""
    if isinstance(value, date):
        return value.isoformat()
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not a JSON type")
