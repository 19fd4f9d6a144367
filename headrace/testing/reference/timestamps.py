"""The calendar of the reference: windows, fields of a timestamp, truncation, INTERVAL.

Windows are aligned to 1970-01-01T00:00:00Z, before it too, and are half-open: a timestamp on an
edge is in the window that begins there. All fields are in UTC. A NULL timestamp is in no window.
tests/testing/test_timestamps.py checks the edges and negative times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from sqlglot import exp

from headrace.core.errors import Unsupported
from headrace.core.time import DAY, HOUR, MICROSECOND, MILLISECOND, MINUTE, SECOND, duration_us
from headrace.testing.reference.casts import cast
from headrace.testing.reference.values import Duration, Timestamp, TimeWindow, Value

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIXED = {
    "MICROSECOND": MICROSECOND, "MILLISECOND": MILLISECOND, "SECOND": SECOND, "MINUTE": MINUTE,
    "HOUR": HOUR, "DAY": DAY, "DD": DAY,
}  # fmt: skip
_MONTHS = {"MONTH": 1, "MON": 1, "MM": 1, "QUARTER": 3, "YEAR": 12, "YYYY": 12, "YY": 12}

FIELDS: dict[type[exp.Expr], str] = {
    exp.Year: "year",
    exp.Month: "month",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
}


def timestamp_field(value: Value, name: str) -> int | None:
    """One field of a timestamp, or of text that is one.

    >>> timestamp_field(Timestamp(-1), "year"), timestamp_field("noon", "hour")
    (1969, None)
    """
    moment = cast(value, "TIMESTAMP")
    return None if moment is None else int(getattr(_calendar(moment), name))


def truncated(value: Value, unit: str) -> Timestamp | None:
    """The beginning of the minute, hour, … of the timestamp; NULL for a unit that does not exist.

    >>> truncated(Timestamp(-1), "day")
    Timestamp(us=-86400000000)
    """
    moment = cast(value, "TIMESTAMP")
    if moment is None:
        return None
    unit = unit.upper()
    if unit in _FIXED:
        return Timestamp(moment.us // _FIXED[unit] * _FIXED[unit])
    if unit == "WEEK":  # 1970-01-01 was a Thursday; a week begins on Monday
        return Timestamp((moment.us + 3 * DAY) // (7 * DAY) * (7 * DAY) - 3 * DAY)
    return _month_begin(moment, _MONTHS[unit]) if unit in _MONTHS else None


def starts_of(place: int, length: int, slide: int, offset: int = 0) -> Iterator[int]:
    """Where the windows of that length, one every `slide`, begin which hold the place.

    >>> list(starts_of(0, length=3, slide=1)), list(starts_of(7, length=3, slide=3))
    ([-2, -1, 0], [6])
    """
    last = (place - offset) // slide * slide + offset
    first = last - (length - 1) // slide * slide
    return (start for start in range(first, last + 1, slide) if place < start + length)


def windows_of(moment: Timestamp, length: int, slide: int, offset: int = 0) -> Iterator[TimeWindow]:
    """The windows of that length, one every `slide`, which hold the timestamp, earliest first.

    >>> [w.start.us for w in windows_of(Timestamp(10), length=10, slide=5)]
    [5, 10]
    """
    for start in starts_of(moment.us, length, slide, offset):
        yield TimeWindow(Timestamp(start), Timestamp(start + length))


def interval(count: str, unit: str | None) -> Duration:
    """The value of INTERVAL; months and years have no fixed length and are refused.

    >>> interval("-2", "HOURS"), interval("1 hour 30 seconds", None)
    (Duration(us=-7200000000), Duration(us=3630000000))
    """
    text = f"{count} {unit}" if unit else count
    # A sign belongs to the number behind it and to no other.
    parts = re.split(r"(?<=[a-zA-Z])\s+(?=[-+.\d])", text.strip())
    try:
        lengths = [(-1 if part[:1] == "-" else 1, duration_us(part.lstrip("+-"))) for part in parts]
        return Duration(sum(sign * length for sign, length in lengths))
    except ValueError as problem:
        raise Unsupported(
            f"the reference interpreter does not support INTERVAL {text}",
            detail=str(problem),
            hint="supported are weeks, days, hours, minutes, seconds and their fractions.",
        ) from problem


def _calendar(moment: Timestamp) -> datetime:
    return _EPOCH + timedelta(microseconds=moment.us)


def _month_begin(moment: Timestamp, months: int) -> Timestamp:
    day = _calendar(moment)
    month = (day.month - 1) // months * months + 1
    begin = datetime(day.year, month, 1, tzinfo=UTC)
    return Timestamp((begin - _EPOCH) // timedelta(microseconds=1))
