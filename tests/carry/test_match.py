"""The fold of a pattern gives the same matches wherever its events are cut, each in the group in
which it was decided, and tells what came late.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.carry.match import NOTHING, match
from headrace.carry.process import Marks
from headrace.compile.plan import MatchPlan
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
from headrace.core.pattern import (
    SET_ASIDE,
    Choice,
    FunctionCall,
    Literal,
    MatchAggregate,
    Pattern,
    Repeat,
    RowNavigation,
    Value,
    Variable,
)
from headrace.core.pattern import Sequence as Steps
from headrace.pattern.matcher import Matcher

# a b+, of which the numbers are collected
PLAN = MatchPlan(
    Pattern(
        Steps((Variable("A"), Repeat(Variable("B"), 1, None))),
        ("c0", "c1", "c2"),
        (("A", Value("c0", RowNavigation())), ("B", Value("c1", RowNavigation()))),
        (("m0", MatchAggregate("collect_list", "c2")),),
    ),
    (),
    (("m0", "ARRAY<BIGINT>"),),
)
# (a | c)+ b, where b is after fewer than three of them: there are exponentially many ways
EXPONENTIAL = MatchPlan(
    Pattern(
        Steps((Repeat(Choice((Variable("A"), Variable("C"))), 1, None), Variable("B"))),
        ("c0", "c1", "c2"),
        (
            ("A", Value("c0", RowNavigation())),
            ("C", Value("c0", RowNavigation())),
            (
                "B",
                FunctionCall(
                    "and",
                    (
                        Value("c1", RowNavigation()),
                        FunctionCall("<", (MatchAggregate("count", None), Literal(4))),
                    ),
                ),
            ),
        ),
        (("m0", MatchAggregate("collect_list", "c2")),),
        within_us=15,
        steps_max=500,
    ),
    (),
    (("m0", "ARRAY<BIGINT>"),),
)
BEFORE = pa.schema(
    [
        (KEY, pa.string()), (TIME, pa.int64()), (SEQ, pa.int64()), (STATE, pa.binary()),
        (CUT, pa.int32()), (PARTITION, pa.int32()), (OFFSET, pa.int64()),
        (ARRIVED_AT, pa.timestamp("us", "UTC")), (LATE, pa.bool_()), (LATENESS, pa.int64()),
        ("c0", pa.bool_()), ("c1", pa.bool_()), ("c2", pa.int64()),
    ]
)  # fmt: skip
AFTER = pa.schema(
    [
        *[BEFORE.field(n) for n in range(10)],
        ("m0", pa.list_(pa.int64())),
        (TIMER, pa.int64()),
        (DISORDERED, pa.bool_()),
    ]
)
Rows = list[dict[str, Any]]


def event(letter: str, time: int, cut: int = 0, key: str = "k") -> dict[str, Any]:
    place = {PARTITION: 0, OFFSET: time, LATE: False, LATENESS: 0}
    order = {KEY: key, TIME: time, SEQ: time, STATE: None, CUT: cut}
    moment = {ARRIVED_AT: datetime(2026, 1, 1, tzinfo=UTC)}
    return {**order, **place, **moment, "c0": letter == "a", "c1": letter == "b", "c2": time}


def folded(
    events: Rows,
    marks: Marks,
    states: Sequence[dict[str, Any]] = (),
    since_us: int | None = None,
    plan: MatchPlan = PLAN,
    size: int = 2,
) -> tuple[list[tuple[int, list[int]]], Rows]:
    """The groups and numbers of the matches, and the states."""
    begun = [{name: row.get(name) for name in BEFORE.names} for row in states]
    rows = sorted([*begun, *events], key=lambda r: (r[KEY], r[STATE] is None, r[TIME], r[SEQ]))
    batches = pa.Table.from_pylist(rows, BEFORE).to_batches(max_chunksize=size)
    made = [r for b in match(batches, plan, marks, since_us, AFTER) for r in b.to_pylist()]
    found = [(row[CUT], row["m0"]) for row in made if row[STATE] is None]
    return found, [row for row in made if row[STATE] is not None]


def test_rows_that_the_watermark_has_not_passed_wait_in_the_state() -> None:
    events = [event("a", 1), event("b", 2), event("c", 3), event("c", 9)]
    found, states = folded(events, [(0, 3)])
    assert found == []
    assert [(state[KEY], state[TIMER]) for state in states] == [("k", 4)]
    found, states = folded([], [(0, 4)], states, since_us=3)
    assert found == [(0, [1, 2])]


def test_a_match_belongs_to_the_group_in_which_it_was_decided() -> None:
    events = [event("a", 1, 4), event("b", 2, 4), event("c", 3, 5), event("a", 7, 5)]
    events += [event("b", 8, 6), event("c", 9, 6), event("c", 20, 6)]
    found, _ = folded(events, [(4, 2), (5, 7), (6, 20)])
    assert found == [(5, [1, 2]), (6, [7, 8])]


def test_an_event_that_is_late_within_the_fold_is_placed_and_told() -> None:
    events = [event("a", 1, 4), event("c", 3, 4), event("c", 9, 4), event("b", 2, 5)]
    found, states = folded(events, [(4, 9), (5, 9)])
    assert found == [(5, [1, 2])]
    assert [(state[DISORDERED], state[CUT]) for state in states] == [(False, 5)]


def test_an_event_before_what_the_states_have_come_to_is_left_out_and_told() -> None:
    found, states = folded([event("a", 1), event("b", 7), event("c", 8)], [(0, 9)], since_us=5)
    assert found == []
    assert [state[DISORDERED] for state in states] == [True]


def test_a_key_of_which_nothing_is_kept_any_more_says_so() -> None:
    found, states = folded([event("a", 1), event("b", 2)], [(0, 3)])
    assert (found, len(states)) == ([], 1)
    found, states = folded([event("c", 4), event("c", 5)], [(0, 6)], states, since_us=3)
    assert found == [(0, [1, 2])]
    assert [state[STATE] for state in states] == [NOTHING]
    assert folded([event("c", 7), event("c", 8)], [(0, 9)]) == ([], [])


def test_the_garbage_collector_is_paused_for_a_search_only() -> None:
    seen = []
    matcher = Matcher.masks

    def noting(self: Matcher, *given: Any) -> list[int]:
        seen.append(gc.isenabled())
        return matcher(self, *given)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Matcher, "masks", noting)
        folded([event("a", 1), event("b", 2), event("c", 3)], [(0, 9)])
    assert not any(seen)
    assert gc.isenabled()


def test_keys_of_one_batch_are_searched_each_by_itself() -> None:
    keys = {f"k{n:02}": "abcaabbbcab"[n % 3 :] for n in range(40)}
    events = [
        event(letter, time, key=key)
        for key, letters in keys.items()
        for time, letter in enumerate(letters, start=1)
    ]
    alone = [folded([e for e in events if e[KEY] == key], [(0, 100)])[0] for key in keys]
    together, _ = folded(events, [(0, 100)], size=200)
    assert together == [match for matches in alone for match in matches]


letters = st.lists(st.sampled_from("abc"), min_size=1, max_size=20)


@given(letters, st.integers(0, 20), st.integers(0, 20))
def test_a_fold_may_be_cut_anywhere(found: list[str], one: int, other: int) -> None:
    events = [event(letter, time) for time, letter in enumerate(found, start=1)]
    whole, _ = folded(events, [(0, 100)])
    parts, states, since = list[tuple[int, list[int]]](), Rows(), None
    lower, upper = sorted((one, other))
    for part, mark in (
        (events[:lower], lower),
        (events[lower:upper], upper),
        (events[upper:], 100),
    ):
        made, after = folded(part, [(0, mark)], states, since)
        parts += made
        states = [state for state in after if state[STATE]] if after else states
        since = mark
    assert parts == whole


def test_a_key_whose_search_is_given_up_is_set_aside_and_the_others_are_searched() -> None:
    many = [event("a", time, key="k") for time in range(40)]
    other = [event("a", 1, key="m"), event("b", 2, key="m"), event("c", 3, key="m")]
    found, states = folded([*many, *other], [(0, 50)], plan=EXPONENTIAL)
    assert [numbers for _, numbers in found] == [[1, 2]]
    (state,) = states
    assert (state[KEY], state[STATE], state[TIME], state[TIMER]) == ("k", SET_ASIDE, 0, None)
    more = [event("a", 51), event("b", 52), event("c", 53)]
    assert folded(more, [(0, 60)], states, since_us=50, plan=EXPONENTIAL) == ([], [])


def test_a_late_event_of_a_key_that_is_set_aside_is_told() -> None:
    aside = {KEY: "k", TIME: 7, SEQ: 7, STATE: SET_ASIDE}
    found, states = folded([event("b", 20)], [(0, 60)], [aside], since_us=50, plan=EXPONENTIAL)
    assert found == []
    (state,) = states
    assert (state[STATE], state[TIME], state[SEQ], state[DISORDERED]) == (SET_ASIDE, 7, 7, True)


@given(cuts=st.lists(st.integers(0, 45), max_size=6))
def test_what_is_set_aside_does_not_depend_on_cuts(cuts: list[int]) -> None:
    events = [event("a", 0), event("b", 1), *(event("a", time) for time in range(2, 30))]
    one, (aside,) = folded(events, [(0, 50)], plan=EXPONENTIAL)
    found, states, since = [], [], None
    for mark in [*sorted(cuts), 50]:
        some = [e for e in events if (since is None or e[TIME] >= since) and e[TIME] < mark]
        more, ends = folded(some, [(0, mark)], states, since, EXPONENTIAL)
        found, states, since = found + more, ends or states, mark
    assert found == one
    assert (states[0][STATE], states[0][TIME]) == (SET_ASIDE, aside[TIME])
