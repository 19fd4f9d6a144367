"""Every kind of window: which windows an event is in."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.core.errors import BadDefinition, Unsupported
from headrace.core.time import SECOND, iso
from testing.streams import Event, answer


def window(start: float, end: float | None) -> dict[str, str | None]:
    return {
        "start": iso(int(start * SECOND)),
        "end": None if end is None else iso(int(end * SECOND)),
    }


def counted(call: str, *said: Event, delay_seconds: int | None = 0) -> list[tuple[Any, ...]]:
    query = f"SELECT {call} AS w, count(*) AS n FROM s GROUP BY {call} ORDER BY w"
    return answer(query, delay_seconds, s=said)


def times(*seconds: int | None) -> list[Event]:
    return [(second, None, 1) for second in seconds]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ([0, 5], [(window(0, 10), 2)]),
        ([0, 6], [(window(0, 5), 1), (window(6, 11), 1)]),
        ([6, 0, 3], [(window(0, 11), 3)]),
        ([-7, -3], [(window(-7, 2), 2)]),
        ([None], []),
        ([3, 3], [(window(3, 8), 2)]),
    ],
)
def test_sessions_join_where_they_touch(seconds: list[int], expected: list[Any]) -> None:
    assert counted("session_window(ts, '5 seconds')", *times(*seconds)) == expected


@pytest.mark.parametrize("gap", ["NULL", "'0 seconds'", "'-1 second'", "'soon'"])
def test_a_gap_that_is_no_length_makes_no_session(gap: str) -> None:
    assert counted(f"session_window(ts, {gap})", *times(1, 2)) == []


def test_a_short_session_inside_a_long_one_does_not_end_it() -> None:
    gap = "session_window(ts, CASE WHEN x = 1 THEN '20 seconds' ELSE '1 second' END)"
    said: list[Event] = [(0, None, 1), (5, None, 2), (10, None, 2), (25, None, 2)]
    assert counted(gap, *said) == [(window(0, 20), 3), (window(25, 26), 1)]


def test_sessions_are_of_the_other_keys() -> None:
    w = "session_window(ts, '5 seconds')"
    query = f"SELECT k, {w}.end AS e, sum(x) AS x FROM s GROUP BY k, {w}"
    found = answer(query, s=[(0, "a", 1), (3, "b", 2), (4, "a", 4)])
    assert found == [("a", iso(9 * SECOND), 5), ("b", iso(8 * SECOND), 2)]


def test_a_landmark_has_one_window_without_an_end() -> None:
    call = "landmark_window(ts, '1970-01-01 00:00:02')"
    assert counted(call, *times(1, 2, 900, None)) == [(window(2, None), 2)]


def test_a_landmark_is_a_moment() -> None:
    with pytest.raises(BadDefinition, match="is not a timestamp"):
        counted("landmark_window(ts, 'noon')", *times(1))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("count_window(2)", [(0, 2), (2, 2), (4, 1)]),
        ("count_window(9)", [(0, 5)]),
        ("count_window(2, 1)", [(-1, 1), (0, 2), (1, 2), (2, 2), (3, 2), (4, 1)]),
        ("count_window(3, 2)", [(-2, 1), (0, 3), (2, 3), (4, 1)]),
        ("punctuated_window(x > 1)", [(0, 5)]),
        ("punctuated_window(true)", [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1)]),
        ("punctuated_window(false, 2)", [(0, 2), (1, 2), (2, 1)]),
        ("punctuated_window(false, NULL, '2 seconds')", [(0, 3), (1, 2)]),
        ("punctuated_window(false, 2, '2 seconds')", [(0, 2), (1, 2), (2, 1)]),
        ("punctuated_window(NULL)", [(0, 5)]),
    ],
)
def test_windows_of_five_events_a_second_apart(call: str, expected: list[Any]) -> None:
    assert counted(call, *times(3, 1, 0, 2, 4)) == expected


def test_without_a_watermark_events_are_counted_as_they_came() -> None:
    query = "SELECT count_window(2) AS w, sum(x) AS x FROM s GROUP BY count_window(2)"
    said: list[Event] = [(9, None, 1), (None, None, 2), (1, None, 4)]
    assert answer(query, None, s=said) == [(0, 3), (2, 4)]
    assert answer(query, 0, s=said) == [(0, 5)]


def test_an_age_needs_event_time() -> None:
    with pytest.raises(BadDefinition, match="requires a stream with a watermark"):
        counted("punctuated_window(false, 9, '1 second')", *times(1, 2), delay_seconds=None)


@pytest.mark.parametrize("call", ["count_window(0)", "count_window('2')", "count_window(1, 2, 3)"])
def test_a_count_is_a_whole_number(call: str) -> None:
    with pytest.raises(BadDefinition, match="requires positive integers, got "):
        counted(call, *times(1))


def test_a_query_has_one_window() -> None:
    query = "SELECT count(*) AS n FROM s GROUP BY count_window(2), window(ts, '1 second')"
    with pytest.raises(Unsupported, match="can have only one window"):
        answer(query, s=times(1))
