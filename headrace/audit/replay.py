"""The history of a row: each epoch and generation that changed it, and the row after each.

The row after a step is made again of the events that the answer had then: all before speed's
position, except those that speed had shed and no generation had absorbed. The definition is
today's, and the last step gives today's row. tests/audit/test_replay.py follows one through both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.audit.events import before
from headrace.audit.row_trace import EVER_PASSED, PASSED, ROW, RowSnapshot, RowTrace
from headrace.audit.trace import Replay, ReplayStep
from headrace.core.event import LATE, OFFSET, PARTITION
from headrace.core.position import Position, PositionRange
from headrace.core.time import iso
from headrace.serving.history import EpochRecord, GenerationRecord


@dataclass(frozen=True, slots=True)
class _HistoryEntry:
    """A step of the stream, whether or not it touched the row."""

    what: str
    number: int
    at_us: int
    range: PositionRange  # of the epoch, or between the generation's boundary and the one before
    position: Position
    boundary: Position


def replay_row(traced: RowTrace, limit: int) -> Replay:
    """The newest `limit` steps of a row."""
    entries = _history(traced.snapshot)
    touched = [
        (entry, *counts) for entry, counts in zip(entries, _counts(traced, entries), strict=True)
    ]
    touched = [step for step in touched if step[1]]
    newest = touched[-limit:]
    steps = [_step(traced, *step) for step in newest]
    ((events,),) = traced.fetch(f"SELECT count(*) FROM {ROW} WHERE NOT {PASSED}")
    agrees, sentence = traced.agreement(events)
    view_row = traced.snapshot.view_row
    return Replay(
        view_row.view.name,
        view_row.shown_key,
        view_row.shown,
        steps,
        len(touched) - len(newest),
        agrees,
        sentence,
        traced.snapshot.as_of,
    )


def _history(snapshot: RowSnapshot) -> list[_HistoryEntry]:
    """The history of the stream in the order of time."""
    start = Position.start(snapshot.state.plan.partitions)
    position, boundary, found = start, start, []
    records: list[EpochRecord | GenerationRecord] = [*snapshot.epochs, *snapshot.generations]
    for record in sorted(records, key=_order):
        if isinstance(record, EpochRecord):
            what, range = "epoch", record.range
        else:
            what, range = "generation", PositionRange(boundary, record.boundary)
            boundary = boundary.latest(record.boundary)
        position = position.latest(range.upper)
        at, _, number = _order(record)
        found.append(_HistoryEntry(what, number, at, range, position, boundary))
    return found


def _order(record: EpochRecord | GenerationRecord) -> tuple[int, bool, int]:
    """By time, and a generation after the epochs that were committed at the same time."""
    if isinstance(record, EpochRecord):
        return record.committed_at, False, record.number
    return record.promoted_at, True, record.number


def _counts(traced: RowTrace, entries: list[_HistoryEntry]) -> list[tuple[int, int, int]]:
    """For each entry, how many events of the row lie in its range, late ones, and shed ones."""
    rows = [
        (n, partition, interval.lower, interval.upper)
        for n, entry in enumerate(entries)
        for partition, interval in entry.range.intervals()
    ]
    if not rows:
        return [(0, 0, 0)] * len(entries)
    ranges = ", ".join(map(str, rows))
    found = traced.fetch(
        f"SELECT s._n, count(*), count(*) FILTER (WHERE {LATE}), "
        f"count(*) FILTER (WHERE {EVER_PASSED}) FROM {ROW} r "
        f"JOIN (VALUES {ranges}) AS s(_n, _p, _lower, _upper) ON r.{PARTITION} = s._p "
        f"AND r.{OFFSET} >= s._lower AND r.{OFFSET} < s._upper GROUP BY s._n"
    )
    known = {n: (events, late, shed) for n, events, late, shed in found}
    return [known.get(n, (0, 0, 0)) for n in range(len(entries))]


def _step(traced: RowTrace, entry: _HistoryEntry, events: int, late: int, shed: int) -> ReplayStep:
    absorbed = f"(NOT {EVER_PASSED} OR {before(entry.boundary)})"
    made: tuple[Any, ...] | None = traced.row(f"{before(entry.position)} AND {absorbed}")
    return ReplayStep(
        entry.what,
        entry.number,
        iso(entry.at_us),
        list(entry.position.offsets),
        list(entry.boundary.offsets),
        events,
        late,
        shed,
        traced.snapshot.view_row.row_of(made) if made else None,
    )
