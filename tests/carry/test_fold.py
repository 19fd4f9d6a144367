"""A fold gives the same rows and states wherever its events are cut, and tells what came late."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headrace.carry.fold import fold
from headrace.carry.rounds import RUNS_MIN
from headrace.compile.plan import StepPlan
from headrace.core.event import CUT, DISORDERED, KEY, SEQ, STATE, TIME, TIMER

STEPS = (
    StepPlan("sum", ("c0",), (), "w0", "BIGINT"),
    StepPlan("row_number", (), (), "w1", "BIGINT"),
)
BEFORE = pa.schema(
    [
        (KEY, pa.string()),
        (TIME, pa.int64()),
        (SEQ, pa.int64()),
        ("c0", pa.int64()),
        (STATE, pa.binary()),
        (CUT, pa.int32()),
    ]
)
AFTER = pa.schema(
    [
        *BEFORE,
        ("w0", pa.int64()),
        ("w1", pa.int64()),
        (TIMER, pa.int64()),
        (DISORDERED, pa.bool_()),
    ]
)
Rows = list[dict[str, Any]]


def event(key: str, time: int, seq: int, value: int, cut: int = 0) -> dict[str, Any]:
    return {KEY: key, TIME: time, SEQ: seq, "c0": value, STATE: None, CUT: cut}


def folded(
    events: Rows, states: Sequence[dict[str, Any]] = (), size: int = 1_000
) -> tuple[Rows, Rows]:
    """Rows and states; the input comes in batches of `size`."""
    begun = [{name: row.get(name) for name in BEFORE.names} | {CUT: None} for row in states]
    rows = sorted([*begun, *events], key=lambda r: (r[KEY], r[STATE] is None, r[TIME], r[SEQ]))
    batches = pa.Table.from_pylist(rows, BEFORE).to_batches(max_chunksize=size)
    made = [row for batch in fold(batches, STEPS, AFTER) for row in batch.to_pylist()]
    return [r for r in made if r[STATE] is None], [r for r in made if r[STATE] is not None]


def values(rows: Rows) -> dict[tuple[str, int], tuple[int, int]]:
    return {(row[KEY], row[SEQ]): (row["w0"], row["w1"]) for row in rows}


@given(
    keys=st.lists(st.sampled_from("abc"), min_size=1, max_size=12),
    cut=st.integers(0, 12),
    size=st.integers(1, 4),
)
def test_a_fold_may_be_cut_anywhere(keys: list[str], cut: int, size: int) -> None:
    events = [event(key, n, n, 2**n) for n, key in enumerate(keys)]
    whole, ends = folded(events)
    first, states = folded(events[:cut], size=size)
    second, after = folded(events[cut:], states, size=size)
    assert values(first) | values(second) == values(whole)
    known = {row[KEY]: row[STATE] for row in [*states, *after]}
    assert known == {row[KEY]: row[STATE] for row in ends}
    assert not any(row[DISORDERED] for row in [*ends, *after])


def test_many_keys_are_folded_each_by_itself() -> None:
    """In rounds, as there are so many of them, where one alone is folded event by event."""
    counts = {f"k{n:02}": n % 7 for n in range(2 * RUNS_MIN)} | {"k99": 40}
    events = [
        event(key, time, time, time * len(key) - 20)
        for key, count in counts.items()
        for time in range(count)
    ]
    for size in (1_000, 150, 33):
        rows, ends = folded(events[::2], size=size)
        more, after = folded(events[1::2], ends, size=size)
        for key in counts:
            mine = [e for e in events if e[KEY] == key]
            one, begun = folded([e for e in events[::2] if e[KEY] == key])
            two, state = folded([e for e in events[1::2] if e[KEY] == key], begun)
            assert values([r for r in rows + more if r[KEY] == key]) == values(one + two)
            assert [r for r in after if r[KEY] == key] == state
            assert len(one) + len(two) == len(mine)


def test_an_event_dated_before_its_keys_state_is_told() -> None:
    _, states = folded([event("a", 10, 1, 1), event("b", 10, 2, 1)])
    _, after = folded([event("a", 9, 3, 1), event("b", 10, 4, 1)], states)
    assert {row[KEY]: row[DISORDERED] for row in after} == {"a": True, "b": False}


def test_a_state_keeps_the_newest_moment_it_has_taken() -> None:
    _, states = folded([event("a", 10, 1, 1)])
    _, after = folded([event("a", 9, 3, 1)], states)
    assert (after[0][TIME], after[0][SEQ]) == (10, 1)


def test_the_newest_group_is_told_after_which_an_older_event_stands() -> None:
    events = [event("a", 1, 1, 1, cut=1), event("a", 2, 3, 1, cut=5), event("a", 3, 2, 1, cut=1)]
    _, ends = folded([*events, event("b", 1, 4, 1, cut=1), event("b", 2, 5, 1, cut=5)], size=2)
    assert {row[KEY]: row[CUT] for row in ends} == {"a": 5, "b": None}


def test_a_state_without_news_is_not_given_again() -> None:
    _, states = folded([event("a", 10, 1, 7)])
    rows, after = folded([], states)
    assert rows == []
    assert after == []
