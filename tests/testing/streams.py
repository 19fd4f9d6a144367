"""A stream with a watermark, for tests of the reference: events are written as short tuples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.core.time import SECOND
from headrace.testing.reference import Reference, StreamWatermark, Timestamp

Event = tuple[int | None, str | None, int | None]  # seconds, key, value
COLUMNS = ["k", "x", "ts"]


def at(seconds: float) -> Timestamp:
    return Timestamp(int(seconds * SECOND))


def events(said: Sequence[Event]) -> list[dict[str, Any]]:
    return [
        {
            "k": k, "x": x, "ts": None if s is None else at(s), "_offset": i, "_partition": 0,
        }
        for i, (s, k, x) in enumerate(said)
    ]  # fmt: skip


def answer(
    query: str, delay_seconds: int | None = 0, **streams: Sequence[Event]
) -> list[tuple[Any, ...]]:
    """The rows of a query over these streams, each with the watermark `delay_seconds` behind."""
    watermarks = {} if delay_seconds is None else {
        name: StreamWatermark("ts", delay_seconds * SECOND) for name in streams
    }  # fmt: skip
    reference = Reference(dict.fromkeys(streams, COLUMNS), {}, {"v": query}, watermarks=watermarks)
    rows = reference.answer("v", {name: events(said) for name, said in streams.items()})
    return [tuple(row.values()) for row in rows]
