"""The values that an expression can have, how they compare and how an answer shows them.

A value is None (SQL's NULL), bool, int, float, Decimal, str, bytes, a list, a dict for an object or
a map, or one of the types below. Comparing with None is unknown, never false: `compare` gives None.
Strings compare by code point, which is the order of their UTF-8 bytes and so Spark's; NaN equals
itself and is above every other number. tests/testing/test_expressions.py checks the order,
tests/testing/test_views.py the shown form.
"""

from __future__ import annotations

import base64
import json
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from headrace.core.time import DAY, iso

Value: TypeAlias = Any
Key: TypeAlias = tuple[str, str]  # (alias, column), both in lower case
Row: TypeAlias = dict[Key, Value]

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """Microseconds since 1970 in UTC. Not an int, so that two are never added by mistake."""

    us: int


@dataclass(frozen=True, slots=True, order=True)
class LocalTimestamp:
    """A TIMESTAMP_NTZ: what a clock and a calendar show, wherever they are."""

    us: int


@dataclass(frozen=True, slots=True, order=True)
class Date:
    """Days since 1970."""

    days: int


@dataclass(frozen=True, slots=True)
class Variant:
    """Any JSON."""

    json: Any


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """The value of an INTERVAL expression."""

    us: int


@dataclass(frozen=True, slots=True, order=True)
class TimeWindow:
    """Timestamps `[start, end)`, or from start on if there is no end; the value of `window(…)`."""

    start: Timestamp
    end: Timestamp | None


def shown(value: Value) -> Value:
    """A value as an answer carries it.

    >>> shown(TimeWindow(Timestamp(0), Timestamp(1_500_000)))
    {'start': '1970-01-01T00:00:00Z', 'end': '1970-01-01T00:00:01.500000Z'}
    """
    if isinstance(value, Timestamp):
        return iso(value.us)
    if isinstance(value, LocalTimestamp):
        return iso(value.us).removesuffix("Z")
    if isinstance(value, Date):
        return iso(value.days * DAY)[:10]
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Variant):
        return _json(value.json)
    if isinstance(value, TimeWindow):
        return {"start": shown(value.start), "end": shown(value.end)}
    if isinstance(value, list):
        return [shown(item) for item in value]
    if isinstance(value, dict):
        return {name: shown(part) for name, part in value.items()}
    return value


def _json(value: Any) -> str:
    """The text of a VARIANT, as Spark writes it: names in order, no zeros at the end of numbers."""
    if isinstance(value, dict):
        pairs = sorted(value.items())
        return "{" + ",".join(f"{_json(name)}:{_json(part)}" for name, part in pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json, value)) + "]"
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    return json.dumps(value, ensure_ascii=False)


def grouping(value: Value) -> Value:
    """A hashable stand-in; equal ones are one value to GROUP BY and DISTINCT."""
    if isinstance(value, list):
        return tuple(grouping(item) for item in value)
    if isinstance(value, dict):  # the entries of a map have no order
        return frozenset((name, grouping(part)) for name, part in value.items())
    if isinstance(value, float) and math.isnan(value):
        return "NaN", None  # a pair, so that the text 'NaN' is not taken for it
    return value


def wrapped(number: int, bits: int = 64) -> int:
    """The whole number as Java keeps it: beyond the largest comes the smallest.

    >>> wrapped(2**63), wrapped(128, bits=8)
    (-9223372036854775808, -128)
    """
    half = 1 << (bits - 1)
    return (number + half) % (1 << bits) - half


def order(a: Value, b: Value) -> int:
    """-1, 0 or 1 for two values of one type, neither of them None."""
    if isinstance(a, dict):
        a, b = list(a.values()), list(b.values())
    if isinstance(a, list):
        return _order_of_lists(a, b)
    left, right = _nan(a), _nan(b)
    if left or right:
        return int(left) - int(right)
    return int(a > b) - int(a < b)


def sort_order(a: Value, b: Value) -> int:
    """`order`, with NULL below everything, as in Spark's ascending sort and inside arrays."""
    if a is None or b is None:
        return int(b is None) - int(a is None)
    return order(a, b)


def _order_of_lists(a: list[Value], b: list[Value]) -> int:
    pairs = (sort_order(x, y) for x, y in zip(a, b, strict=False))
    return next((found for found in pairs if found), int(len(a) > len(b)) - int(len(a) < len(b)))


def _nan(value: Value) -> bool:
    return isinstance(value, float) and math.isnan(value)
