"""The law of headrace/log/late.py: lateness is decided by the log's order, however it is cut."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.time import HOUR
from headrace.log.late import mark_late

EVENTS = st.lists(st.tuples(st.integers(-5, 60) | st.none(), st.integers(0, 3)), max_size=30)


def vectorised(
    events: list[tuple[int | None, int]], delay_us: int, high_us: int | None
) -> tuple[list[bool], int | None]:
    times = np.array([time or 0 for time, _ in events], np.int64)
    known = np.array([time is not None for time, _ in events], bool)
    arrived = np.array([hours * HOUR - HOUR for _, hours in events], np.int64)
    late, high = mark_late(times, known, arrived, delay_us, high_us)
    return late.tolist(), high


def one_by_one(
    events: list[tuple[int | None, int]], delay_us: int, high_us: int | None
) -> tuple[list[bool], int | None]:
    late = []
    for time, hours in events:
        late.append(time is not None and high_us is not None and time < high_us - delay_us)
        if time is not None and time <= (hours * HOUR - HOUR) + HOUR:
            high_us = time if high_us is None else max(high_us, time)
    return late, high_us


@given(EVENTS, st.integers(0, 30), st.none() | st.integers(0, 60))
def test_the_columns_agree_with_the_sentence(
    events: list[tuple[int | None, int]], delay_us: int, high_us: int | None
) -> None:
    assert vectorised(events, delay_us, high_us) == one_by_one(events, delay_us, high_us)


@given(EVENTS, EVENTS, st.integers(0, 30), st.none() | st.integers(0, 60))
def test_a_cut_changes_nothing(
    first: list[tuple[int | None, int]],
    second: list[tuple[int | None, int]],
    delay_us: int,
    high_us: int | None,
) -> None:
    whole, high = vectorised(first + second, delay_us, high_us)
    a, between = vectorised(first, delay_us, high_us)
    b, after = vectorised(second, delay_us, between)
    assert (a + b, after) == (whole, high)


def test_one_producer_a_day_ahead_makes_nobody_late() -> None:
    day = 24 * HOUR
    arrived = np.zeros(3, np.int64)
    late, high = mark_late(np.array([0, day, -5]), np.ones(3, bool), arrived, 10, None)
    assert late.tolist() == [False, False, False]
    assert high == 0
