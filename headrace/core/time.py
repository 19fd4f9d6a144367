"""Time is whole microseconds since 1970 in UTC, and is handed in through a clock.

tests/core/test_time.py checks the conversions both ways.
"""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Clock = Callable[[], int]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_UTC = _EPOCH.replace(tzinfo=None)
MICROSECOND, MILLISECOND, SECOND = 1, 1_000, 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND
# The first and the last timestamp that can be written: the years 1 to 9999.
FIRST = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
# The longest duration: now plus this is still a timestamp that can be written.
DURATION_MAX = 1_000 * 365 * DAY

_UNITS = {
    "microsecond": MICROSECOND, "us": MICROSECOND, "millisecond": MILLISECOND, "ms": MILLISECOND,
    "second": SECOND, "s": SECOND, "minute": MINUTE, "min": MINUTE, "m": MINUTE, "hour": HOUR,
    "h": HOUR, "day": DAY, "d": DAY, "week": 7 * DAY,
}  # fmt: skip
_NAMES = [f"{unit}s" for unit in _UNITS if len(unit) > 2 and unit != "min"]
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]+)")


def now_us() -> int:
    """The machine's clock; tests pass their own."""
    return time.time_ns() // 1_000


def duration_us(text: str) -> int:
    """The length of a duration, as SQL and settings write it.

    >>> duration_us("10 minutes"), duration_us("1 hour 30 seconds"), duration_us("500ms")
    (600000000, 3630000000, 500000)
    """
    total, end = 0.0, 0
    for match in _DURATION.finditer(text):
        if match.start() != end:
            break
        unit = match[2].lower()
        unit = unit if unit in _UNITS else unit.removesuffix("s")
        if unit not in _UNITS:
            raise ValueError(_no_unit(match[2]))
        total += float(match[1]) * _UNITS[unit]
        end = match.end()
    if end == 0 or text[end:].strip():
        raise ValueError(f"'{text}' is not a duration such as '10 minutes'")
    if total > DURATION_MAX:
        raise ValueError(f"duration '{text[:40]}' exceeds the maximum of 1000 years")
    return round(total)


def _no_unit(word: str) -> str:
    """Why a word is not a unit of time, and which there are."""
    said = f"'{word}' is not a unit of time"
    if word.lower().removesuffix("s") in {"month", "quarter", "year"}:
        said += ", because months and years have no fixed length"
    near = difflib.get_close_matches(word.lower(), _NAMES, 1)
    meant = f"; did you mean '{near[0]}'?" if near else ""
    return f"{said}; use {', '.join(_NAMES[:-1])} or {_NAMES[-1]}{meant}"


def duration_text(us: int) -> str:
    """The shortest way to say a duration.

    >>> duration_text(3_600_000_000), duration_text(1_500_000), duration_text(250_000)
    ('1h', '1.5s', '250ms')
    """
    for size, unit in ((DAY, "d"), (HOUR, "h"), (MINUTE, "m"), (SECOND, "s"), (MILLISECOND, "ms")):
        if us >= size:
            return f"{us / size:.3g}{unit}" if us < 1000 * size else f"{us // size}{unit}"
    return f"{us}us"


def iso(us: int) -> str:
    """ISO 8601 in UTC, with a fraction only where there is one. The window of an event at an end
    of time reaches beyond it, and is clipped there.

    >>> iso(0), iso(1_500_000), iso(LAST + 1)
    ('1970-01-01T00:00:00Z', '1970-01-01T00:00:01.500000Z', '9999-12-31T23:59:59.999999Z')
    """
    # Without a zone, which takes as long to write as all the rest.
    moment = _EPOCH_UTC + timedelta(microseconds=min(max(us, FIRST), LAST))
    return moment.isoformat() + "Z"


def from_iso(text: str) -> int:
    """Microseconds of an ISO 8601 timestamp; one without a zone is in UTC.

    >>> from_iso("1970-01-01T00:00:01.5Z"), from_iso("1970-01-01 01:00:00+01:00")
    (1500000, 0)
    """
    moment = datetime.fromisoformat(text.strip())
    try:
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"'{text}' is before the year 1 or after the year 9999 in UTC") from error
    return (moment - _EPOCH) // timedelta(microseconds=1)
