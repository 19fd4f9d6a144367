"""How a row came about: each epoch and generation that touched it, and the row after each.

The row after a step is made again of the events that the answer had then: all before speed's
position, but for those that speed had passed over and no generation had absorbed. The definition is
today's, and the last step gives today's row. tests/audit/test_replay.py follows one through both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.audit.events import before
from headrace.audit.trace import Replay, Step
from headrace.audit.tracing import EVER_PASSED, PASSED, ROW, Asked, Tracing
from headrace.core.event import LATE, OFFSET, PARTITION
from headrace.core.position import Position, PositionRange
from headrace.core.time import iso
from headrace.serving.history import EpochRecord, GenerationRecord


@dataclass(frozen=True, slots=True)
class _Moment:
    """A step of the stream, whether or not it touched the row."""

    what: str
    number: int
    at_us: int
    range: PositionRange  # of the epoch, or between the generation's boundary and the one before
    position: Position
    boundary: Position


def replay_row(traced: Tracing, limit: int) -> Replay:
    """The newest `limit` steps of a row."""
    moments = _moments(traced.asked)
    touched = [(m, *counts) for m, counts in zip(moments, _counts(traced, moments), strict=True)]
    touched = [step for step in touched if step[1]]
    newest = touched[-limit:]
    steps = [_step(traced, *step) for step in newest]
    ((events,),) = traced.fetch(f"SELECT count(*) FROM {ROW} WHERE NOT {PASSED}")
    agrees, sentence = traced.agreement(events)
    cell = traced.asked.cell
    return Replay(
        cell.view.name,
        cell.shown_key,
        cell.shown,
        steps,
        len(touched) - len(newest),
        agrees,
        sentence,
        traced.asked.as_of,
    )


def _moments(asked: Asked) -> list[_Moment]:
    """The history of the stream in the order of time."""
    start = Position.start(asked.state.plan.partitions)
    position, boundary, found = start, start, []
    records: list[EpochRecord | GenerationRecord] = [*asked.epochs, *asked.generations]
    for record in sorted(records, key=_order):
        if isinstance(record, EpochRecord):
            what, range = "epoch", record.range
        else:
            what, range = "generation", PositionRange(boundary, record.boundary)
            boundary = boundary.latest(record.boundary)
        position = position.latest(range.upper)
        at, _, number = _order(record)
        found.append(_Moment(what, number, at, range, position, boundary))
    return found


def _order(record: EpochRecord | GenerationRecord) -> tuple[int, bool, int]:
    """By time, and a generation after the epochs of the same moment."""
    if isinstance(record, EpochRecord):
        return record.committed_at, False, record.number
    return record.promoted_at, True, record.number


def _counts(traced: Tracing, moments: list[_Moment]) -> list[tuple[int, int, int]]:
    """For each moment how many events of the row lie in its range, late ones, and passed over."""
    rows = [
        (n, partition, interval.lower, interval.upper)
        for n, moment in enumerate(moments)
        for partition, interval in moment.range.intervals()
    ]
    if not rows:
        return [(0, 0, 0)] * len(moments)
    ranges = ", ".join(map(str, rows))
    found = traced.fetch(
        f"SELECT s._n, count(*), count(*) FILTER (WHERE {LATE}), "
        f"count(*) FILTER (WHERE {EVER_PASSED}) FROM {ROW} r "
        f"JOIN (VALUES {ranges}) AS s(_n, _p, _lower, _upper) ON r.{PARTITION} = s._p "
        f"AND r.{OFFSET} >= s._lower AND r.{OFFSET} < s._upper GROUP BY s._n"
    )
    known = {n: (events, late, shed) for n, events, late, shed in found}
    return [known.get(n, (0, 0, 0)) for n in range(len(moments))]


def _step(traced: Tracing, moment: _Moment, events: int, late: int, shed: int) -> Step:
    absorbed = f"(NOT {EVER_PASSED} OR {before(moment.boundary)})"
    made: tuple[Any, ...] | None = traced.row(f"{before(moment.position)} AND {absorbed}")
    return Step(
        moment.what,
        moment.number,
        iso(moment.at_us),
        list(moment.position.offsets),
        list(moment.boundary.offsets),
        events,
        late,
        shed,
        traced.asked.cell.row_of(made) if made else None,
    )
