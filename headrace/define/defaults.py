"""Checks that a default is a value of its column's type, before any event arrives.

The decoder reads a default as it reads the field of an event; what is refused here is what it would
refuse. tests/define/test_columns.py asks both about the same literals.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

from headrace.core.schema import Column, Type
from headrace.core.time import from_iso
from headrace.core.time_format import TimeFormat

_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?", re.A)
_SINGLE_MAX = 2.0**128 - 2.0**103


def default_mismatch(column: Column) -> str | None:
    """What the default of a column must be; None if it is valid."""
    if column.default is None:
        return None
    value = json.loads(column.default, parse_float=Decimal)
    if column.type.nested:
        return f"supported for the type {column.type.spark}"
    if column.format:
        format = TimeFormat.parse(column.format)
        whole = isinstance(value, str) or format.numbers
        return None if whole and _taken(format.read, _text(value)) else format.expected
    return None if _fits(column.type, value) else f"of type {column.type.spark}"


def _fits(type: Type, value: Any) -> bool:
    text = isinstance(value, str)
    number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    match type.name:
        case "STRING":
            return text
        case "BOOLEAN":
            return isinstance(value, bool)
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT":
            bound = 1 << (_BITS[type.name] - 1)
            return number and isinstance(value, int) and -bound <= value < bound
        case "FLOAT":
            return number and abs(value) < _SINGLE_MAX
        case "DOUBLE":
            return number and abs(float(value)) < float("inf")
        case "DECIMAL" if type.size:
            return (number or text) and _fits_decimal(_text(value), *type.size)
        case "TIMESTAMP":
            return text and bool(_TIME.fullmatch(value)) and _taken(from_iso, value)
        case "TIMESTAMP_NTZ":
            return text and bool(_TIME.fullmatch(f"{value}Z")) and _taken(from_iso, value)
        case "DATE":
            return text and len(value) == len("2026-01-01") and _taken(date.fromisoformat, value)
        case "BINARY":
            return text and _taken(lambda said: base64.b64decode(said, validate=True), value)
    return True


def _text(value: Any) -> str:
    return str(value)


def _taken(read: Callable[[Any], Any], value: Any) -> bool:
    try:
        read(value)
    except (ValueError, ArithmeticError):
        return False
    return True


def _fits_decimal(text: str, precision: int, scale: int) -> bool:
    if not _taken(Decimal, text) or not Decimal(text).is_finite():
        return False
    units = Decimal(text).scaleb(scale)
    return units == units.to_integral_value() and abs(units) < 10**precision
