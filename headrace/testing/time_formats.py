"""Parses times by a FORMAT, with Python's own strptime and fractions.

The engine has a reader of its own for both; this one shares nothing with it.
tests/core/test_time_format.py compares the two.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from headrace.core.errors import Unsupported

_UNITS_US = {
    "epoch_s": Fraction(1_000_000),
    "epoch_ms": Fraction(1_000),
    "epoch_us": Fraction(1),
    "epoch_ns": Fraction(1, 1_000),
}
_DIRECTIVES = {
    "yyyy": "%Y", "uuuu": "%Y", "MM": "%m", "M": "%m", "MMM": "%b", "MMMM": "%B", "dd": "%d",
    "d": "%d", "EEE": "%a", "EEEE": "%A", "HH": "%H", "H": "%H", "hh": "%I", "h": "%I", "a": "%p",
    "mm": "%M", "m": "%M", "ss": "%S", "s": "%S", "Z": "%z", "XXX": "%z", "XX": "%z",
    "SSS": "%f", "SSSSSS": "%f",
}  # fmt: skip
_PIECE = re.compile(r"'([^']*)'|(([A-Za-z])\3*)|(.)", re.S)
_ZERO = datetime(1970, 1, 1, tzinfo=UTC)


def timestamp_us(value: Any, format: str) -> int:
    """Microseconds since 1970 of a value in a format; ValueError if it is not in that format.

    >>> timestamp_us("1.5", "epoch_s"), timestamp_us("2 Jan 1970", "d MMM yyyy")
    (1500000, 86400000000)
    """
    if format in _UNITS_US:
        return _epoch_us(value, _UNITS_US[format])
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a string")
    time = datetime.strptime(value, "".join(_directive(*p) for p in _PIECE.findall(format)))
    time = time.replace(tzinfo=UTC) if time.tzinfo is None else time
    return (time - _ZERO) // timedelta(microseconds=1)


def _epoch_us(value: Any, unit_us: Fraction) -> int:
    if type(value) not in (int, str, Decimal):
        raise ValueError(f"{value!r} is not a number")
    if isinstance(value, str) and not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", value):
        raise ValueError(f"{value!r} is not a number")
    return math.floor(Fraction(value) * unit_us)


def _directive(quoted: str, letters: str, _letter: str, sign: str) -> str:
    if letters and letters not in _DIRECTIVES:
        raise Unsupported(f"'{letters}' is not supported in a time format")
    return _DIRECTIVES[letters] if letters else (quoted or sign or "'").replace("%", "%%")
