"""A threshold is reached by the same events however they were cut, and as counting says."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.pattern import Threshold
from headrace.pattern.threshold import Row, ThresholdMatcher

Found = list[tuple[Any, ...]]
events = st.lists(
    st.tuples(st.integers(0, 60), st.sampled_from(["x", "y", "z", None])), max_size=40
).map(lambda found: sorted(found, key=lambda event: event[0]))
thresholds = st.builds(
    Threshold,
    st.just(("value",)),
    st.integers(1, 5),
    st.integers(1, 30),
    st.sampled_from([None, "value"]),
)


def rows_of(found: list[tuple[int, Any]]) -> list[Row]:
    return [(time, number, (value,)) for number, (time, value) in enumerate(found)]


def reached(threshold: Threshold, parts: list[list[Row]]) -> Found:
    """What the parts reach, each resumed from what the one before has left."""
    made, state, searches = [], None, ThresholdMatcher(threshold)
    for part in parts:
        search = searches.begin() if state is None else searches.resume(state)
        search.take(part)
        made += [(found.row[1], *found.measures) for found in search.matches(None, ended=False)]
        state = msgspec.msgpack.decode(msgspec.msgpack.encode(search.state()))
    return made


def counted(threshold: Threshold, rows: list[Row]) -> list[int]:
    """The times of those that count among some rows."""
    if threshold.counted is None:
        return [time for time, _, _ in rows]
    return list({value: time for time, _, (value,) in rows if value is not None}.values())


def by_counting(threshold: Threshold, rows: list[Row]) -> Found:
    made = []
    for number, row in enumerate(rows):
        within = [r for r in rows[: number + 1] if r[0] > row[0] - threshold.within_us]
        times = counted(threshold, within)
        if len(times) >= threshold.least > len(counted(threshold, within[:-1])):
            made.append((number, min(times), row[0]))
    return made


def test_all_nan_are_one_value() -> None:
    threshold = Threshold(("value",), 3, 30, "value")
    rows = rows_of([(time, float("nan")) for time in range(3)])
    assert reached(threshold, [rows[:1], rows[1:], rows_of([(3, 1.0), (4, 2.0)])]) == [(1, 2, 4)]


@given(thresholds, events, st.integers(0, 40), st.integers(0, 40))
def test_it_is_reached_as_counting_says_wherever_the_rows_are_cut(
    threshold: Threshold, found: list[tuple[int, Any]], one: int, other: int
) -> None:
    rows, (lower, upper) = rows_of(found), sorted((one, other))
    expected = by_counting(threshold, rows)
    assert reached(threshold, [rows]) == expected
    assert reached(threshold, [rows[:lower], rows[lower:upper], rows[upper:]]) == expected


@pytest.mark.parametrize("counts", [None, "value"])
def test_what_is_kept_of_a_key_has_a_bound(counts: str | None) -> None:
    threshold = Threshold(("value",), 3, 1_000_000, counts)
    search = ThresholdMatcher(threshold).begin()
    search.take([(time, time, (time % 50,)) for time in range(10_000)])
    list(search.matches(None, ended=False))
    state = search.state()
    assert state is not None
    assert len(state) == 4


def test_a_key_is_forgotten_when_the_watermark_has_passed_its_interval() -> None:
    search = ThresholdMatcher(Threshold((), 2, 10)).begin()
    search.take([(5, 0, ())])
    assert list(search.matches(14, ended=False)) == []
    assert (search.state(), search.due_us()) == ([5], 15)
    assert list(search.matches(15, ended=False)) == []
    assert search.state() is None
