"""How a TIMESTAMP is written in events, where it is not ISO 8601: an epoch, or a pattern.

An epoch is a number of seconds, milli-, micro- or nanoseconds since 1970, read digit by digit: no
float comes between, and what is finer than a microsecond is cut off towards the past. A pattern is
one of Spark's with the letters that mean the same in every language and place; names of months and
days are English. Whatever is read is microseconds within the years 1 to 9999.
tests/core/test_time_format.py checks both.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from headrace.core.datetime_formatter import DateTimeFormatter
from headrace.core.time import FIRST, LAST

# The power of ten that makes microseconds of a unit.
_EPOCHS = {
    "epoch_s": ("seconds", 6),
    "epoch_ms": ("milliseconds", 3),
    "epoch_us": ("microseconds", 0),
    "epoch_ns": ("nanoseconds", -3),
}
_NUMBER = re.compile(r"(-?[0-9]{1,40})(?:\.([0-9]{1,40}))?(?:[eE]([+-]?[0-9]{1,2}))?")


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """A format, and the functions that read and write it. Reading raises ValueError if a value is
    not of the format, and OverflowError if it is, and no year from 1 to 9999 holds it.

    >>> TimeFormat.parse("epoch_ms").read(1_500), TimeFormat.parse("dd.MM.yyyy").read("02.01.1970")
    (1500000, 86400000000)
    """

    text: str
    expected: str
    numbers: bool  # whether the value may be a JSON number
    read: Callable[[int | str], int]
    write: Callable[[int], int | str]

    @staticmethod
    def parse(text: str) -> TimeFormat:
        """Read a format; ValueError says what is wrong with it."""
        if text in _EPOCHS:
            unit, power = _EPOCHS[text]
            expected, read = f"an epoch in {unit}", _epoch_reader(power)
            return TimeFormat(text, expected, True, read, lambda us: _shifted(us, -power))
        pattern = DateTimeFormatter.parse(text)
        expected, read = f"a time in the format '{text}'", _pattern_reader(pattern)
        return TimeFormat(text, expected, False, read, pattern.write)


def _epoch_reader(power: int) -> Callable[[int | str], int]:
    def read(value: int | str) -> int:
        if isinstance(value, int):
            return _within(_shifted(value, power))
        match = _NUMBER.fullmatch(value)
        if match is None:
            raise ValueError(value)
        fraction = match[2] or ""
        shift = int(match[3] or 0) - len(fraction) + power
        return _within(_shifted(int(match[1] + fraction), shift))

    return read


def _shifted(number: int, power: int) -> int:
    """The number times a power of ten; what is below one is cut off towards the past."""
    return number * int(10**power) if power >= 0 else number // int(10**-power)


def _within(us: int) -> int:
    if not FIRST <= us <= LAST:
        raise OverflowError(us)
    return us


def _pattern_reader(pattern: DateTimeFormatter) -> Callable[[int | str], int]:
    def read(value: int | str) -> int:
        return _within(pattern.read(str(value)))

    return read
