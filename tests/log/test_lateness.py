"""headrace/log/lateness.py: lateness depends on the order of the log alone, not on its cuts."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.time import HOUR
from headrace.log.lateness import lateness

Events = list[tuple[int | None, int]]  # event time, hours between arrival and the bound
EVENTS = st.lists(st.tuples(st.integers(-5, 60) | st.none(), st.integers(0, 3)), max_size=30)
HIGH, DELAY = st.none() | st.integers(0, 60), st.integers(0, 30)
AHEAD = st.sampled_from([0, 1, HOUR - 1, HOUR, HOUR + 40])


def vectorised(
    events: Events, high_us: int | None, delay_us: int, ahead_us: int = HOUR
) -> tuple[list[int], int | None]:
    times = np.array([time or 0 for time, _ in events], np.int64)
    known = np.array([time is not None for time, _ in events], bool)
    arrived = np.array([hours * HOUR - HOUR for _, hours in events], np.int64)
    late_us, high = lateness(times, known, arrived, high_us, delay_us, ahead_us)
    return late_us.tolist(), high


def one_by_one(
    events: Events, high_us: int | None, delay_us: int, ahead_us: int
) -> tuple[list[int], int | None]:
    late_us = []
    for time, hours in events:
        known = time is not None and high_us is not None
        late_us.append(max(0, high_us - delay_us - time) if known else 0)  # type: ignore[operator]
        if time is not None and time <= (hours * HOUR - HOUR) + ahead_us:
            high_us = time if high_us is None else max(high_us, time)
    return late_us, high_us


@given(EVENTS, HIGH, DELAY, AHEAD)
def test_the_columns_agree_with_the_sentence(
    events: Events, high_us: int | None, delay_us: int, ahead_us: int
) -> None:
    said = one_by_one(events, high_us, delay_us, ahead_us)
    assert vectorised(events, high_us, delay_us, ahead_us) == said


@given(EVENTS, EVENTS, HIGH, DELAY)
def test_a_cut_changes_nothing(
    first: Events, second: Events, high_us: int | None, delay_us: int
) -> None:
    whole, high = vectorised(first + second, high_us, delay_us)
    a, between = vectorised(first, high_us, delay_us)
    b, after = vectorised(second, between, delay_us)
    assert (a + b, after) == (whole, high)


def test_one_producer_a_day_ahead_makes_nobody_late() -> None:
    times, arrived = np.array([0, 24 * HOUR, -5]), np.zeros(3, np.int64)
    late_us, high = lateness(times, np.ones(3, bool), arrived, None, 10, HOUR)
    assert late_us.tolist() == [0, 0, 0]
    assert high == 0


def test_the_bound_is_the_stream_s_own() -> None:
    times, arrived = np.array([0, 24 * HOUR, -5]), np.zeros(3, np.int64)
    late_us, high = lateness(times, np.ones(3, bool), arrived, None, 10, 24 * HOUR)
    assert late_us.tolist() == [0, 0, 24 * HOUR - 5]
    assert high == 24 * HOUR


def test_the_first_and_the_last_year_of_a_timestamp_do_not_overflow() -> None:
    first, last = -62_135_596_800_000_000, 253_402_300_799_999_999
    times, arrived = np.array([last, first]), np.array([last, last])
    late_us, _ = lateness(times, np.ones(2, bool), arrived, None, 0, HOUR)
    assert late_us.tolist() == [0, last - first]
