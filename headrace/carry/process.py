"""The fold of a user's processor: events of a key in order and the timer between them -> rows.

A key has a state and at most one timer. The timer fires, once, before the next event that is dated
at or after it, or when the watermark has reached it: `marks` gives the watermark at the end of each
group of epochs, so that a row which a timer made belongs to the group in which it fired. An event
that comes in a later group, but before that timer, is out of order. Rows have the place in the log
of the key's last event. tests/carry/test_process.py checks it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import msgspec
import pyarrow as pa

from headrace.carry.ends import KeyEndRows
from headrace.carry.runs import runs
from headrace.compile.plan import ProcessorPlan
from headrace.core.errors import BadDefinition
from headrace.core.event import (
    ARRIVED_AT,
    CUT,
    KEY,
    LATE,
    LATENESS,
    OFFSET,
    PARTITION,
    SEQ,
    STATE,
    TIME,
)
from headrace.log.plain_values import datetime_of, python_values

Marks = Sequence[tuple[int, int | None]]  # group, watermark at its end
PLACE = (PARTITION, OFFSET, ARRIVED_AT, LATE, LATENESS)
ROWS_MAX = 20_000
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


class Timers:
    """The key's single timer, as passed to `on_event` and `on_timer`."""

    def __init__(self, moment_us: int | None = None) -> None:
        self.moment_us = moment_us

    def at(self, moment: int | datetime) -> None:
        """Set the timer, to microseconds since 1970 or a datetime."""
        whole = moment if isinstance(moment, int) else (moment - _EPOCH) // _MICROSECOND
        self.moment_us = whole

    def clear(self) -> None:
        self.moment_us = None


def process(
    batches: Iterable[pa.RecordBatch],
    plan: ProcessorPlan,
    body: type,
    state_type: Any,
    marks: Marks,
    schema: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    """Run a processor over rows that are sorted by key and order."""
    processing = _Processing(plan, body(), state_type, marks, schema)
    for batch in batches:
        yield from processing.take(batch)
    yield from processing.end()


class _Processing:
    def __init__(
        self, plan: ProcessorPlan, body: Any, state_type: Any, marks: Marks, schema: pa.Schema
    ) -> None:
        self.plan, self.body, self.marks, self.schema = plan, body, marks, schema
        self.decoder = msgspec.json.Decoder(state_type)
        self.outputs: list[tuple[Any, ...]] = []
        self.ends = KeyEndRows()
        self.key: str | None = None
        self.begin(None)

    def begin(self, key: str | None) -> None:
        self.key, self.disordered, self.changed = key, False, False
        self.last: tuple[int, int] | None = None
        self.cut: int | None = None
        self.disordered_cut: int | None = None
        self.timers = Timers()
        self.place: tuple[Any, ...] = (None,) * len(PLACE)
        self.state = self.kept(self.body.init()) if key is not None else None

    def kept(self, state: Any) -> Any:
        return self.decoder.decode(msgspec.json.encode(state))

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        columns = {name: python_values(batch[name]) for name in batch.schema.names}
        for key, lower, upper in runs(batch[KEY]):
            if key != self.key:
                self.end_key()
                self.begin(key)
            if columns[STATE][lower] is not None:
                self.resume(columns, lower)
                lower += 1
            for row in range(lower, upper):
                self.event(columns, row)
            if len(self.outputs) >= ROWS_MAX:
                yield self.rows()
        yield from self.full_ends()

    def resume(self, columns: dict[str, list[Any]], row: int) -> None:
        state, place, timer = msgspec.json.decode(columns[STATE][row])
        self.state = self.decoder.decode(msgspec.json.encode(state))
        self.place = (*place[:2], None if place[2] is None else datetime_of(place[2]), *place[3:])
        self.timers = Timers(timer)
        self.last = (columns[TIME][row], columns[SEQ][row])

    def event(self, columns: dict[str, list[Any]], row: int) -> None:
        at = (columns[TIME][row], columns[SEQ][row])
        cut = columns[CUT][row]
        if self.last is not None and at < self.last and self.cut is None:
            self.disordered = True
        if self.cut is not None and cut < self.cut:
            self.disordered_cut = self.cut
        elif self.too_late(at[0], cut):
            self.disordered_cut = cut
        self.fire(at[0], cut)
        self.cut = cut if self.cut is None else max(cut, self.cut)
        self.last = at if self.last is None else max(at, self.last)
        self.place = tuple(columns[name][row] for name in PLACE)
        event = SimpleNamespace(**{name: columns[name][row] for name in self.plan.columns})
        self.made(self.body.on_event(self.state, event, self.timers), cut)

    def too_late(self, time_us: int, cut: int) -> bool:
        """Whether the timer after this event had fired in a group before `cut`."""
        us = self.timers.moment_us
        return us is not None and time_us < us and self.group(us, cut) < cut

    def group(self, us: int, cut: int) -> int:
        """The group in which a timer fires by the watermark, `cut` at the latest: none before that
        of the key's newest event.
        """
        since = -1 if self.cut is None else self.cut
        reached = (g for g, mark in self.marks if g >= since and mark is not None and mark >= us)
        return min(cut, next(reached, cut))

    def fire(self, until_us: int, cut: int) -> None:
        """Fire the timer as long as it is due at `until_us`, which came in group `cut`."""
        while (us := self.timers.moment_us) is not None and us <= until_us:
            self.timers.clear()
            rows = self.body.on_timer(self.state, datetime_of(us), self.timers)
            self.made(rows, self.group(us, cut))
            self.last = max(self.last or (us, -1), (us, -1))
            if self.timers.moment_us is not None and self.timers.moment_us <= us:
                raise BadDefinition(
                    f"processor '{self.plan.name}' set a timer that is not later than the one that "
                    "fired"
                )

    def made(self, rows: Iterable[tuple[Any, ...]] | None, cut: int) -> None:
        self.changed = True
        for row in rows or ():
            if len(row) != len(self.plan.outputs):
                raise BadDefinition(
                    f"processor '{self.plan.name}' returned a row of {len(row)} values, "
                    f"expected {len(self.plan.outputs)}"
                )
            self.outputs.append((*row, *self.place, cut))
        self.state = self.kept(self.state)

    def end_key(self) -> None:
        if self.key is None:
            return
        if self.marks and self.marks[-1][1] is not None:
            self.fire(self.marks[-1][1], self.marks[-1][0])
        if self.last is not None and self.changed:
            place = [*self.place[:2], _us(self.place[2]), *self.place[3:]]
            kept = msgspec.json.encode([self.state, place, self.timers.moment_us])
            timer, cut = self.timers.moment_us, self.disordered_cut
            self.ends.add(self.key, self.last, kept, timer, self.disordered, cut)

    def end(self) -> Iterator[pa.RecordBatch]:
        self.end_key()
        if self.outputs:
            yield self.rows()
        yield self.ends.batch(self.schema)

    def full_ends(self) -> Iterator[pa.RecordBatch]:
        if len(self.ends) >= ROWS_MAX:
            yield self.ends.batch(self.schema)
            self.ends = KeyEndRows()

    def rows(self) -> pa.RecordBatch:
        names = [name for name, _ in self.plan.outputs]
        columns = dict(zip([*names, *PLACE, CUT], zip(*self.outputs, strict=True), strict=True))
        count, self.outputs = len(self.outputs), []
        arrays = [
            pa.array(columns[f.name], f.type) if f.name in columns else pa.nulls(count, f.type)
            for f in self.schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _us(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - _EPOCH) // _MICROSECOND
