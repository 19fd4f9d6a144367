"""Windows, truncation and intervals at their edges."""

from __future__ import annotations

import pytest

from headrace.core.errors import Unsupported
from headrace.core.time import DAY, HOUR, SECOND
from headrace.testing.reference.timestamps import interval, truncated, windows_of
from headrace.testing.reference.values import Duration, Timestamp


def starts(us: int, length: int, slide: int, offset: int = 0) -> list[int]:
    return [window.start.us for window in windows_of(Timestamp(us), length, slide, offset)]


@pytest.mark.parametrize(
    ("us", "start"), [(0, 0), (9, 0), (10, 10), (-1, -10), (-10, -10), (-11, -20)]
)
def test_a_moment_is_in_one_tumbling_window_also_before_1970(us: int, start: int) -> None:
    assert starts(us, length=10, slide=10) == [start]


@pytest.mark.parametrize(
    ("us", "length", "slide", "expected"),
    [
        (10, 10, 5, [5, 10]),
        (9, 10, 5, [0, 5]),
        (-1, 10, 5, [-10, -5]),
        (7, 10, 4, [0, 4]),
        (8, 10, 4, [0, 4, 8]),
        (3, 2, 5, []),
    ],
)
def test_sliding_windows_cover_or_leave_gaps(
    us: int, length: int, slide: int, expected: list[int]
) -> None:
    assert starts(us, length, slide) == expected


def test_windows_may_begin_off_the_hour() -> None:
    assert starts(HOUR, HOUR, HOUR, offset=15 * 60 * SECOND) == [15 * 60 * SECOND]
    assert starts(HOUR // 2, HOUR, HOUR, offset=45 * 60 * SECOND) == [-15 * 60 * SECOND]


@pytest.mark.parametrize(
    ("unit", "us", "expected"),
    [("DAY", -1, -DAY), ("hour", HOUR + 1, HOUR), ("WEEK", 0, -3 * DAY), ("YEAR", DAY, 0)],
)
def test_truncation_goes_towards_the_past(unit: str, us: int, expected: int) -> None:
    assert truncated(Timestamp(us), unit) == Timestamp(expected)


def test_an_interval_has_a_sign_and_several_parts() -> None:
    assert interval("-2", "HOURS") == Duration(-2 * HOUR)
    assert interval("1 hour 30 seconds", None) == Duration(HOUR + 30 * SECOND)
    assert interval("- 1 hour 30 seconds", None) == Duration(30 * SECOND - HOUR)
    assert interval("1 hour -30 seconds", None) == Duration(HOUR - 30 * SECOND)


def test_months_are_refused_because_they_have_no_length() -> None:
    with pytest.raises(Unsupported) as caught:
        interval("1", "MONTH")
    assert str(caught.value).splitlines()[0] == (
        "Unsupported: the reference interpreter does not support INTERVAL 1 MONTH"
    )
