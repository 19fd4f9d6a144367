"""How the text of an option becomes a value; a ValueError says what it must be.

tests/ingest/test_connector.py reads each refusal.
"""

from __future__ import annotations

import math
import re
from pathlib import PurePosixPath

from headrace.core.time import duration_us
from headrace.ingest.options import Read


def text(value: str) -> str:
    if not value.strip():
        raise ValueError("a non-empty string")
    return value.strip()


def word(*words: str) -> Read:
    """One of these words."""

    def read(value: str) -> str:
        if value.strip().lower() not in words:
            raise ValueError(" or ".join(f"'{w}'" for w in words))
        return value.strip().lower()

    return read


def switch(on: str, off: str) -> Read:
    """True for one word, False for the other."""
    read_word = word(on, off)
    return lambda value: read_word(value) == on


def whole_number(least: int, most: int) -> Read:
    """A whole number in these bounds, both included."""

    def read(value: str) -> int:
        # int() also takes '1_0' and other scripts' digits.
        number = int(value) if re.fullmatch(r"\s*[0-9]{1,18}\s*", value) else -1
        if not least <= number <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return number

    return read


def _number(value: str) -> float:
    """A number; NaN, which is in no bounds, if it is not one."""
    try:
        return float(value)
    except ValueError:
        return math.nan


def number_above_zero(value: str) -> float:
    if not 0 < (number := _number(value)) <= 1e9:
        raise ValueError("a number above 0 and at most 1e9")
    return number


def fraction(value: str) -> float:
    if not 0 <= (number := _number(value)) <= 1:
        raise ValueError("a fraction between 0 and 1")
    return number


def duration(value: str) -> int:
    """Microseconds, above zero."""
    try:
        us = duration_us(value)
    except ValueError:
        us = 0
    if us <= 0:
        raise ValueError("a duration such as '10 minutes'")
    return us


def pattern(value: str) -> str:
    """A glob of files inside the project."""
    path = PurePosixPath(text(value))
    if path.is_absolute() or ".." in path.parts:
        raise ValueError("a pattern of files inside the project, such as 'inbox/*.ndjson'")
    return str(path)
