"""Python functions for a DuckDB connection, where DuckDB has none that agrees with Spark's.

They are called where no native form is exact: half-up rounding of doubles, decimal division, case
mapping beyond ASCII, the many ways in which Spark reads a date or a time.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import duckdb

# Spark divides decimals to 39 digits after the point before it rounds to the result's scale.
_DIVISION_SCALE = 39
_CONTEXT = Context(prec=700, rounding=ROUND_HALF_UP)


def register(connection: duckdb.DuckDBPyConnection) -> None:
    """Register the functions in a connection."""
    for function, takes, gives in _FUNCTIONS:
        connection.create_function(
            function.__name__, null_safe(function), list(takes), gives, null_handling="special"
        )


def null_safe(function: Callable[..., Any]) -> Callable[..., Any]:
    """NULL for NULL, and for what the function cannot read."""

    @functools.wraps(function)  # DuckDB counts the parameters
    def call(*given: Any) -> Any:
        if None in given:
            return None
        try:
            return function(*given)
        except (ValueError, ArithmeticError):
            return None

    return call


def spark_upper(text: str) -> str:
    return text.upper()


def spark_lower(text: str) -> str:
    return text.lower()


def spark_initcap(text: str) -> str:
    words = re.split(r"(?<= )", text)
    return "".join(word[:1].title() + word.lower()[len(word[:1].lower()) :] for word in words)


def spark_round(number: float, places: int) -> float:
    """Half up, by the digits that are shown: 2.675 is 2.68 though its binary value is less."""
    if not -1e308 <= number <= 1e308:
        return number
    return float(_rounded(Decimal(repr(number)), places))


def spark_decimal(number: float, digits: int, scale: int) -> str | None:
    """A double as the text of a decimal."""
    rounded = _rounded(Decimal(repr(number)), scale)
    return str(rounded) if _fits(rounded, digits, scale) else None


def spark_decimal_text(text: str) -> str:
    """A decimal as Java writes it: with an exponent below 0.000001."""
    return str(Decimal(text))


def spark_divide(a: str, b: str, digits: int, scale: int) -> str | None:
    """The quotient of two decimals, each as text."""
    divisor = Decimal(b)
    if not divisor:
        return None
    quotient = _rounded(_CONTEXT.divide(Decimal(a), divisor), _DIVISION_SCALE)
    rounded = _rounded(quotient, scale)
    return f"{rounded:f}" if _fits(rounded, digits, scale) else None


def spark_multiply(a: str, b: str, digits: int, scale: int) -> str | None:
    """The product of two decimals whose digits are too many for DuckDB's own."""
    rounded = _rounded(_CONTEXT.multiply(Decimal(a), Decimal(b)), scale)
    return f"{rounded:f}" if _fits(rounded, digits, scale) else None


def spark_date(text: str) -> date | None:
    """A text as Spark casts it to a date: yyyy, yyyy-m or yyyy-m-d, and anything after T or a
    space.
    """
    found = _DATE.fullmatch(_trimmed(text))
    return date(int(found[1]), int(found[2] or 1), int(found[3] or 1)) if found else None


def spark_timestamp(text: str) -> datetime | None:
    """A text as Spark casts it to a timestamp, in UTC where it names no zone."""
    found = _TIMESTAMP.fullmatch(_trimmed(text))
    if not found:
        return None
    day = date(int(found[1]), int(found[2] or 1), int(found[3] or 1))
    hour, minute, second = (int(part or 0) for part in found.group(4, 5, 6))
    micros = int((found[7] or "")[:6].ljust(6, "0"))
    time = datetime(day.year, day.month, day.day, hour, minute, second, micros, _zone(found[8]))
    return time.astimezone(UTC).replace(tzinfo=None)


def _zone(text: str | None) -> timezone | ZoneInfo:
    if not text or text in {"Z", "UTC", "GMT"}:
        return UTC
    offset = re.fullmatch(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?", text)
    if not offset:
        try:
            return ZoneInfo(text)
        except ZoneInfoNotFoundError as error:
            raise ValueError(text) from error
    hours, minutes, seconds = (int(part or 0) for part in offset.group(2, 3, 4))
    span = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if span > timedelta(hours=18) or minutes > 59 or seconds > 59:
        raise ValueError(text)
    return timezone(-span if offset[1] == "-" else span)


def _trimmed(text: str) -> str:
    return text.strip("".join(map(chr, range(33))) + "\x7f")


def _rounded(number: Decimal, places: int) -> Decimal:
    return number.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, _CONTEXT)


def _fits(number: Decimal, digits: int, scale: int) -> bool:
    return abs(number) < Decimal(10) ** (digits - scale)


_DATE = re.compile(r"\+?(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.S)
_TIMESTAMP = re.compile(
    r"\+?(\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[ T](?:(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?)? ?([A-Za-z+-].*)?)?)?)?"
)
_FUNCTIONS: tuple[tuple[Callable[..., Any], tuple[str, ...], str], ...] = (
    (spark_upper, ("VARCHAR",), "VARCHAR"),
    (spark_lower, ("VARCHAR",), "VARCHAR"),
    (spark_initcap, ("VARCHAR",), "VARCHAR"),
    (spark_round, ("DOUBLE", "INTEGER"), "DOUBLE"),
    (spark_decimal, ("DOUBLE", "INTEGER", "INTEGER"), "VARCHAR"),
    (spark_decimal_text, ("VARCHAR",), "VARCHAR"),
    (spark_divide, ("VARCHAR", "VARCHAR", "INTEGER", "INTEGER"), "VARCHAR"),
    (spark_multiply, ("VARCHAR", "VARCHAR", "INTEGER", "INTEGER"), "VARCHAR"),
    (spark_date, ("VARCHAR",), "DATE"),
    (spark_timestamp, ("VARCHAR",), "TIMESTAMP"),
)
