"""Times in a pattern such as `dd/MMM/yyyy:HH:mm:ss Z`.

The letters are those of Spark's patterns that mean the same in every language and place; names of
months and days are English, in any case. A field is written as its letters say: `dd` has two digits
and `d` one or two. What a pattern does not have is the first of its kind, and without a zone a time
is in UTC. tests/core/test_time_format.py checks that what is written is read again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from headrace.core.time import MINUTE

_ZERO = datetime(1970, 1, 1, tzinfo=UTC)
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_OFFSET = r"[+-][0-9]{2}"
# What a run of letters stands for: the field, and how it is written.
_LETTERS = {
    "yyyy": ("year", r"[0-9]{4}"), "uuuu": ("year", r"[0-9]{4}"), "yy": ("short", r"[0-9]{2}"),
    "M": ("month", r"[0-9]{1,2}"), "MM": ("month", r"[0-9]{2}"),
    "MMM": ("name", "|".join(name[:3] for name in _MONTHS)), "MMMM": ("name", "|".join(_MONTHS)),
    "d": ("day", r"[0-9]{1,2}"), "dd": ("day", r"[0-9]{2}"),
    "E": ("weekday", "|".join(name[:3] for name in _DAYS)),
    "EEE": ("weekday", "|".join(name[:3] for name in _DAYS)), "EEEE": ("weekday", "|".join(_DAYS)),
    "H": ("hour", r"[0-9]{1,2}"), "HH": ("hour", r"[0-9]{2}"),
    "h": ("half", r"[0-9]{1,2}"), "hh": ("half", r"[0-9]{2}"), "a": ("noon", "am|pm"),
    "m": ("minute", r"[0-9]{1,2}"), "mm": ("minute", r"[0-9]{2}"),
    "s": ("second", r"[0-9]{1,2}"), "ss": ("second", r"[0-9]{2}"),
    "Z": ("zone", _OFFSET + "[0-9]{2}"), "XXX": ("zone", f"Z|{_OFFSET}:[0-9]{{2}}"),
    "XX": ("zone", f"Z|{_OFFSET}[0-9]{{2}}"), "X": ("zone", f"Z|{_OFFSET}(?:[0-9]{{2}})?"),
    "xxx": ("zone", f"{_OFFSET}:[0-9]{{2}}"), "xx": ("zone", _OFFSET + "[0-9]{2}"),
}  # fmt: skip
_LETTERS |= {"S" * n: ("fraction", rf"[0-9]{{1,{n}}}") for n in range(1, 10)}
KNOWN = (
    "yyyy, yy, MMMM, MMM, MM, M, dd, d, EEEE, EEE, HH, H, hh, h, a, mm, m, ss, s, S…, Z, X… or x…"
)
_PIECE = re.compile(r"'(?P<quoted>(?:[^']|'')*)'|(?P<letters>([A-Za-z])\3*)|(?P<sign>.)", re.S)
# Fields of which a pattern has one at most.
_ONE_OF = (("year", "short"), ("month", "name"), ("hour", "half"))


@dataclass(frozen=True, slots=True)
class DateTimeFormatter:
    """A pattern: a regular expression with a group for each field, and the pieces to write.

    >>> pattern = DateTimeFormatter.parse("dd MMM yyyy, hh:mm a")
    >>> pattern.write(0), pattern.read("01 jan 1970, 12:01 am")
    ('01 Jan 1970, 12:00 AM', 60000000)
    """

    expression: re.Pattern[str]
    pieces: tuple[tuple[str, bool], ...]  # letters that stand for a field, or text that is itself

    @staticmethod
    def parse(text: str) -> DateTimeFormatter:
        """Read a pattern; ValueError says what is wrong with it."""
        pieces = tuple(_piece(found, text) for found in _PIECE.finditer(text))
        fields = [_LETTERS[letters] for letters, field in pieces if field]
        _check(text, [field for field, _ in fields])
        written = [
            f"(?P<{_LETTERS[piece][0]}>{_LETTERS[piece][1]})" if field else re.escape(piece)
            for piece, field in pieces
        ]
        return DateTimeFormatter(re.compile("".join(written), re.IGNORECASE | re.ASCII), pieces)

    def read(self, text: str) -> int:
        """Microseconds since 1970; ValueError if the text is not of this pattern."""
        match = self.expression.fullmatch(text)
        if match is None:
            raise ValueError(text)
        return _moment_us(match.groupdict())

    def write(self, us: int) -> str:
        """The time in UTC, without what the pattern has no letters for."""
        time = _ZERO + timedelta(microseconds=us)
        return "".join(_written(piece, time) if field else piece for piece, field in self.pieces)


def _piece(found: re.Match[str], text: str) -> tuple[str, bool]:
    if found["letters"] is None:
        return _literal(found, text), False
    if found["letters"] not in _LETTERS:
        letters = f"the format '{text}' has '{found['letters']}'"
        raise ValueError(f"{letters}, which is not supported; use {KNOWN}")
    return found["letters"], True


def _literal(piece: re.Match[str], text: str) -> str:
    if piece["quoted"] is not None:
        return piece["quoted"].replace("''", "'") or "'"
    if piece["sign"] in "[]{}#'":
        raise ValueError(f"the format '{text}' has '{piece['sign']}', which is not supported")
    return piece["sign"]


def _check(text: str, fields: list[str]) -> None:
    for field in fields:
        rivals = next((pair for pair in _ONE_OF if field in pair), (field,))
        if sum(fields.count(rival) for rival in rivals) > 1:
            raise ValueError(f"the format '{text}' has the {rivals[0]} twice")
    if not {"year", "short"} & set(fields):
        raise ValueError(f"the format '{text}' has no year; write yyyy, or epoch_s, epoch_ms …")
    if ("half" in fields) != ("noon" in fields):
        raise ValueError(f"the format '{text}' has hh without a, or a without hh; write HH")


def _moment_us(found: dict[str, str | None]) -> int:
    day = datetime(_year(found), _month(found), int(found.get("day") or 1), tzinfo=UTC)
    weekday = found.get("weekday")
    if weekday and not _DAYS[day.weekday()].startswith(weekday.lower()):
        raise ValueError(weekday)
    minute, second = int(found.get("minute") or 0), int(found.get("second") or 0)
    time = day.replace(hour=_hour(found), minute=minute, second=second)
    fraction = int((found.get("fraction") or "").ljust(6, "0")[:6])
    return (time - _ZERO) // timedelta(microseconds=1) + fraction - _offset_us(found.get("zone"))


def _year(found: dict[str, str | None]) -> int:
    short = found.get("short")
    return 2000 + int(short) if short else int(found["year"] or 0)


def _month(found: dict[str, str | None]) -> int:
    if name := found.get("name"):
        return 1 + next(n for n, m in enumerate(_MONTHS) if m.startswith(name.lower()))
    return int(found.get("month") or 1)


def _hour(found: dict[str, str | None]) -> int:
    half = found.get("half")
    if half is None:
        return int(found.get("hour") or 0)
    if not 1 <= int(half) <= 12:
        raise ValueError(half)
    return int(half) % 12 + (12 if (found["noon"] or "").lower() == "pm" else 0)


def _offset_us(zone: str | None) -> int:
    """How far the zone is ahead of UTC."""
    if zone is None or zone.upper() == "Z":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 18 or minutes > 59:
        raise ValueError(zone)
    offset = (hours * 60 + minutes) * MINUTE
    return -offset if zone[0] == "-" else offset


def _written(letters: str, time: datetime) -> str:
    """One field of a time."""
    field, digits = _LETTERS[letters][0], len(letters)
    match field:
        case "fraction":
            return f"{time.microsecond:06}000"[:digits]
        case "name":
            return _MONTHS[time.month - 1].title()[: 3 if digits == 3 else None]
        case "weekday":
            return _DAYS[time.weekday()].title()[: None if digits == 4 else 3]
        case "zone":
            return {"Z": "+0000", "xx": "+0000", "xxx": "+00:00"}.get(letters, "Z")
        case "noon":
            return "AM" if time.hour < 12 else "PM"
    numbers = {"short": time.year % 100, "half": (time.hour - 1) % 12 + 1}
    number: int = numbers[field] if field in numbers else getattr(time, field)
    return f"{number:0{digits}}"
