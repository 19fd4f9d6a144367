"""Moments and durations, there and back: text -> microseconds -> text loses nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.core.time import (
    DAY,
    HOUR,
    MILLISECOND,
    MINUTE,
    SECOND,
    duration_text,
    duration_us,
    from_iso,
    iso,
    now_us,
)

FIRST, LAST = from_iso("0001-01-02T00:00:00Z"), from_iso("9999-12-30T23:59:59.999999Z")
MOMENTS = st.integers(FIRST, LAST)
UNITS = {
    "us": 1, "microseconds": 1, "ms": MILLISECOND, "millisecond": MILLISECOND, "s": SECOND,
    "Seconds": SECOND, "m": MINUTE, "min": MINUTE, "MINUTES": MINUTE, "h": HOUR, "hour": HOUR,
    "d": DAY, "days": DAY, "week": 7 * DAY, "weeks": 7 * DAY,
}  # fmt: skip

KNOWN = "use microseconds, milliseconds, seconds, minutes, hours, days or weeks"


@given(MOMENTS)
@example(-1)
@example(0)
@example(999_999)
def test_moment_survives_as_text(us: int) -> None:
    assert from_iso(iso(us)) == us


@given(MOMENTS)
def test_text_of_a_moment_is_utc_with_a_fraction_only_where_there_is_one(us: int) -> None:
    assert iso(us).endswith("Z")
    assert ("." in iso(us)) == bool(us % SECOND)


@given(MOMENTS, st.integers(-14 * 60, 14 * 60))
def test_moment_is_the_same_in_every_zone(us: int, minutes: int) -> None:
    zone = timezone(timedelta(minutes=minutes))
    utc = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)
    assert from_iso(utc.astimezone(zone).isoformat()) == us


@given(MOMENTS, MOMENTS)
def test_texts_of_whole_seconds_are_in_the_order_of_their_moments(a: int, b: int) -> None:
    a, b = a - a % SECOND, b - b % SECOND
    assert (iso(a) < iso(b)) == (a < b)


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("1970-01-01", 0),
        ("1970-01-01T00:00:00", 0),
        (" 1969-12-31T23:59:59.999999Z ", -1),
        ("2026-11-15T19:00:00+01:00", 1_794_765_600_000_000),
        ("2026-11-15 18:00:00", 1_794_765_600_000_000),
    ],
)
def test_moment_is_read_in_each_spelling(text: str, us: int) -> None:
    assert from_iso(text) == us


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "12:00",
        "2026-13-01",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:00:00-02:00",
    ],
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        from_iso(text)


@given(st.integers(0, 10_000), st.sampled_from(sorted(UNITS)), st.sampled_from(["", " "]))
def test_duration_is_a_number_of_units(count: int, unit: str, space: str) -> None:
    assert duration_us(f"{count}{space}{unit}") == count * UNITS[unit]


@given(st.lists(st.tuples(st.integers(0, 99), st.sampled_from(sorted(UNITS))), min_size=1))
def test_parts_of_a_duration_are_added(parts: list[tuple[int, str]]) -> None:
    text = " ".join(f"{count} {unit}" for count, unit in parts)
    assert duration_us(text) == sum(count * UNITS[unit] for count, unit in parts)


@given(st.sampled_from([1, MILLISECOND, SECOND, MINUTE, HOUR, DAY]), st.integers(1, 23))
def test_round_duration_survives_as_text(size: int, count: int) -> None:
    assert duration_us(duration_text(size * count)) == size * count


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "'' is not a duration such as '10 minutes'"),
        ("10", "'10' is not a duration such as '10 minutes'"),
        ("-5 s", "'-5 s' is not a duration such as '10 minutes'"),
        ("5 s and more", "'5 s and more' is not a duration such as '10 minutes'"),
        ("5 fortnights", f"'fortnights' is not a unit of time; {KNOWN}"),
        ("1 minuts", f"'minuts' is not a unit of time; {KNOWN}; did you mean 'minutes'?"),
        (
            "1 month",
            "'month' is not a unit of time, because months and years have no fixed length; "
            f"{KNOWN}",
        ),
        ("99999999999999 days", "duration '99999999999999 days' exceeds the maximum of 1000 years"),
        ("9" * 400 + " s", f"duration '{'9' * 40}' exceeds the maximum of 1000 years"),
    ],
)
def test_what_is_no_duration_is_refused_with_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        duration_us(text)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("us", "text"),
    [(0, "0us"), (7, "7us"), (90 * SECOND, "1.5m"), (1_000 * DAY, "1000d"), (36 * HOUR, "1.5d")],
)
def test_duration_is_said_in_its_largest_unit(us: int, text: str) -> None:
    assert duration_text(us) == text


def test_the_machines_clock_is_in_microseconds() -> None:
    assert abs(now_us() - datetime.now(UTC).timestamp() * SECOND) < MINUTE
