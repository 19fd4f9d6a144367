"""A processor's rows do not depend on where its events are cut; timers fire once, in event time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace

from headrace.carry.process import Marks, Timers, process
from headrace.compile.plan import ProcessorPlan
from headrace.core.errors import BadDefinition
from headrace.core.event import (
    ARRIVED_AT,
    CUT,
    DISORDERED,
    KEY,
    LATE,
    LATENESS,
    OFFSET,
    PARTITION,
    SEQ,
    STATE,
    TIME,
    TIMER,
)
from headrace.core.time import DAY, LAST

PLACES = [
    (PARTITION, pa.int32()),
    (OFFSET, pa.int64()),
    (ARRIVED_AT, pa.timestamp("us", "UTC")),
    (LATE, pa.bool_()),
    (LATENESS, pa.int64()),
]
KEYED = [(KEY, pa.string()), (TIME, pa.int64()), (SEQ, pa.int64()), (STATE, pa.binary())]
BEFORE = pa.schema([*KEYED, *PLACES, ("user", pa.string()), (CUT, pa.int32())])
AFTER = pa.schema(
    [
        *KEYED,
        *PLACES,
        (CUT, pa.int32()),
        ("n", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        (TIMER, pa.int64()),
        (DISORDERED, pa.bool_()),
    ]
)
PLAN = ProcessorPlan("Idle", ("user",), (("n", "BIGINT"), ("at", "TIMESTAMP")))
Rows = list[dict[str, Any]]


@dataclass
class Count:
    n: int = 0


class Idle:
    """Says how many events came before a pause of ten microseconds, and when the pause was over."""

    def init(self) -> Count:
        return Count()

    def on_event(self, state: Count, event: Any, timers: Timers) -> Any:
        state.n += 1
        timers.at(event_time(event) + 10)
        return ()

    def on_timer(self, state: Count, at: datetime, timers: Timers) -> Any:
        yield state.n, at
        state.n = 0


def event_time(event: Any) -> int:
    return int(event.user)


def at(us: int) -> datetime:
    return datetime.fromtimestamp(0, UTC).replace(microsecond=us)


def event(time: int, cut: int = 0, key: str = "k") -> dict[str, Any]:
    place = {PARTITION: 0, OFFSET: time, ARRIVED_AT: at(0), LATE: False, LATENESS: 0}
    return {KEY: key, TIME: time, SEQ: time, STATE: None, CUT: cut, "user": str(time), **place}


def processed(
    events: Rows,
    marks: Marks,
    states: Sequence[dict[str, Any]] = (),
    body: type = Idle,
) -> tuple[Rows, Rows]:
    begun = [{name: row.get(name) for name in BEFORE.names} | {CUT: None} for row in states]
    rows = sorted([*begun, *events], key=lambda r: (r[KEY], r[STATE] is None, r[TIME]))
    batches = pa.Table.from_pylist(rows, BEFORE).to_batches(max_chunksize=2)
    made = process(batches, PLAN, body, Count, marks, AFTER)
    found = [row for batch in made for row in batch.to_pylist()]
    return [r for r in found if r[STATE] is None], [r for r in found if r[STATE] is not None]


def told(rows: Rows) -> list[tuple[int, datetime, int]]:
    return [(row["n"], row["at"], row[CUT]) for row in rows]


def test_a_timer_fires_before_the_next_event_that_is_dated_at_or_after_it() -> None:
    rows, [end] = processed([event(1), event(5), event(15)], [(0, None)])
    assert told(rows) == [(2, at(15), 0)]
    assert (end[TIMER], end[DISORDERED]) == (25, False)


def test_a_timer_fires_when_the_watermark_has_reached_it() -> None:
    rows, [end] = processed([event(1)], [(0, 11)])
    assert told(rows) == [(1, at(11), 0)]
    assert end[TIMER] is None
    assert processed([event(1)], [(0, 10)])[0] == []


def test_a_key_without_events_goes_on_when_its_timer_is_due() -> None:
    _, states = processed([event(1)], [(0, 5)])
    rows, _ = processed([], [(7, 11)], states)
    assert told(rows) == [(1, at(11), 7)]
    assert rows[0][OFFSET] == 1


class Seen:
    """Says when its events were, and when its timer is due."""

    def init(self) -> Count:
        return Count()

    def on_event(self, state: Count, event: Any, timers: Timers) -> Any:
        timers.at(LAST + 1)
        yield 0, event.ts

    def on_timer(self, state: Count, at: datetime, timers: Timers) -> Any:
        yield 1, at


def test_a_time_after_the_year_9999_is_the_last_one() -> None:
    plan, schema = replace(PLAN, columns=("ts",)), BEFORE.append(pa.field("ts", pa.int64()))
    row = event(1) | {"ts": LAST + DAY}
    batch = pa.RecordBatch.from_pylist([row], schema)
    times = batch["ts"].cast(pa.timestamp("us", "UTC"))
    batch = batch.set_column(batch.num_columns - 1, "ts", times)
    made = process([batch], plan, Seen, Count, [(0, LAST + 1)], AFTER)
    rows = [row for batch in made for row in batch.to_pylist() if row[STATE] is None]
    end = datetime.max.replace(tzinfo=UTC)
    assert told(rows) == [(0, end, 0), (1, end, 0)]


@pytest.mark.parametrize("cut", range(4))
def test_rows_do_not_depend_on_where_events_are_cut(cut: int) -> None:
    events = [event(1), event(5), event(30), event(31)]
    whole, _ = processed(events, [(0, 50)])
    first, states = processed(events[:cut], [(0, None)])
    second, _ = processed(events[cut:], [(0, 50)], states)
    assert told(first) + told(second) == told(whole) == [(2, at(15), 0), (2, at(41), 0)]


def test_a_row_of_a_timer_belongs_to_the_group_in_which_it_fired() -> None:
    events = [event(1, cut=1), event(40, cut=3)]
    rows, _ = processed(events, [(1, 5), (2, 20), (3, 45)])
    assert told(rows) == [(1, at(11), 2)]


def test_a_row_of_a_timer_is_in_no_group_before_the_events_that_it_knows() -> None:
    rows, [end] = processed([event(1, cut=3)], [(1, 5), (2, 20), (3, 45)])
    assert told(rows) == [(1, at(11), 3)]
    assert end[CUT] is None


def test_an_event_before_a_timer_that_an_earlier_group_has_let_fire_is_out_of_order() -> None:
    marks = [(1, 5), (2, 20), (3, 45)]
    rows, [end] = processed([event(1, cut=1), event(8, cut=3)], marks)
    assert (told(rows), end[CUT]) == ([(2, at(18), 3)], 3)
    _, states = processed([event(1)], [(1, 5)])
    _, [end] = processed([event(8, cut=3)], marks[1:], states)
    assert end[CUT] == 3
    _, [end] = processed([event(1, cut=1), event(8, cut=2)], marks)
    assert end[CUT] is None, "the timer had not fired before its group"


def test_an_event_before_a_timer_that_has_fired_is_out_of_order() -> None:
    _, states = processed([event(1)], [(0, 11)])
    _, [end] = processed([event(8)], [(0, 11)], states)
    assert end[DISORDERED]


class Wrong(Idle):
    def on_timer(self, state: Count, at: datetime, timers: Timers) -> Any:
        timers.at(at)
        return ()


def test_a_timer_may_not_stand_still() -> None:
    with pytest.raises(BadDefinition, match="not later than the one that fired"):
        processed([event(1)], [(0, 11)], body=Wrong)


class Short(Idle):
    def on_timer(self, state: Count, at: datetime, timers: Timers) -> Any:
        yield (1,)


def test_a_row_has_as_many_values_as_there_are_columns() -> None:
    with pytest.raises(BadDefinition, match="returned a row of 1 values, expected 2"):
        processed([event(1)], [(0, 11)], body=Short)
