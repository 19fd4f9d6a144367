"""Functions of dates and times, in UTC. Spark's calendar is proleptic Gregorian, and so is
DuckDB's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from headrace.certified.casts import cast
from headrace.certified.function import Scalar, rows
from headrace.certified.intervals import in_calendar
from headrace.certified.typed import Typed, not_available

S, I, B, T, DAY = "STRING", "INT", "BIGINT", "TIMESTAMP", "DATE"  # noqa: E741
_TRUNC = {
    "year": "year", "yyyy": "year", "yy": "year", "quarter": "quarter", "month": "month",
    "mon": "month", "mm": "month", "week": "week", "day": "day", "dd": "day", "hour": "hour",
    "minute": "minute", "second": "second", "millisecond": "milliseconds",
    "microsecond": "microseconds",
}  # fmt: skip
_OF_DATES = {"year", "quarter", "month", "week"}
# Letters of Spark's patterns that have one meaning in DuckDB's.
_LETTERS = {
    "yyyy": "%Y", "yy": "%y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S",
    "MMM": "%b", "MMMM": "%B", "EEE": "%a", "E": "%a", "EEEE": "%A", "DDD": "%j", "hh": "%I",
    "a": "%p", "SSSSSS": "%f", "SSS": "%g", "M": "%-m", "d": "%-d", "H": "%-H",
    "h": "%-I", "y": "%Y",
}  # fmt: skip


def _date_trunc(arguments: Sequence[Typed]) -> Typed:
    unit = _TRUNC.get((arguments[0].literal or "").lower())
    if unit is None:
        raise not_available(f"date_trunc('{arguments[0].literal}', …)")
    value = arguments[1]
    return value.as_type(f"CAST(date_trunc('{unit}', {value.sql}) AS TIMESTAMP)", T)


def _trunc(arguments: Sequence[Typed]) -> Typed:
    unit = _TRUNC.get((arguments[1].literal or "").lower())
    if unit not in _OF_DATES:
        raise not_available(f"trunc(…, '{arguments[1].literal}')")
    value = arguments[0]
    return value.as_type(f"CAST(date_trunc('{unit}', {value.sql}) AS DATE)", DAY)


def _date_format(arguments: Sequence[Typed]) -> Typed:
    pattern = arguments[1].literal or ""
    words = re.finditer(r"'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z']+", pattern)
    said = "".join(_directive(word.group(), pattern) for word in words)
    value = arguments[0]
    literal = said.replace("'", "''")
    return value.as_type(f"strftime({value.sql}, '{literal}')", S)


def _directive(word: str, pattern: str) -> str:
    if word.startswith("'"):
        return (word[1:-1].replace("''", "'") or "'").replace("%", "%%")
    if not word[0].isalpha():
        return word.replace("%", "%%")
    if word not in _LETTERS:
        raise not_available(f"'{word}' in the pattern '{pattern}'")
    return _LETTERS[word]


def _field(name: str, sql: str, takes: str = T) -> Scalar:
    return Scalar(name, (takes,), f"CAST({sql} AS INTEGER)", I)


def _add_months(arguments: Sequence[Typed]) -> Typed:
    value, months = arguments
    sql = f"TRY(CAST({value.sql} + to_months({months.sql}) AS DATE))"
    return value.as_type(in_calendar(sql, DAY), DAY)


ROWS = rows(
    _field("year", "year({0})", DAY),
    _field("quarter", "quarter({0})", DAY),
    _field("month", "month({0})", DAY),
    _field("day", "day({0})", DAY),
    _field("dayofyear", "dayofyear({0})", DAY),
    _field("weekofyear", "weekofyear({0})", DAY),
    _field("dayofweek", "dayofweek({0}) + 1", DAY),
    _field("weekday", "isodow({0}) - 1", DAY),
    _field("hour", "hour({0})"),
    _field("minute", "minute({0})"),
    _field("second", "second({0})"),
    Scalar("date_trunc", ("LITERAL", T), _date_trunc),
    Scalar("trunc", (DAY, "LITERAL"), _trunc),
    Scalar("date_format", (T, "LITERAL"), _date_format),
    Scalar("last_day", (DAY,), "last_day({0})", DAY),
    Scalar("date_add", (DAY, I), in_calendar("TRY({0} + {1})", DAY), DAY),
    Scalar("date_sub", (DAY, I), in_calendar("TRY({0} - {1})", DAY), DAY),
    Scalar("datediff", (DAY, DAY), "CAST({0} - {1} AS INTEGER)", I),
    Scalar("add_months", (DAY, I), _add_months),
    Scalar("to_date", (DAY,), "{0}", DAY),
    Scalar("to_timestamp", ("ANY",), lambda given: cast(given[0], T)),
    Scalar("date", ("ANY",), lambda given: cast(given[0], DAY)),
    Scalar("timestamp", ("ANY",), lambda given: cast(given[0], T)),
    Scalar("unix_micros", ("TIMESTAMP!",), "epoch_us({0})", B),
    Scalar("unix_millis", ("TIMESTAMP!",), "CAST(floor(epoch_us({0}) / 1000) AS BIGINT)", B),
    Scalar("unix_seconds", ("TIMESTAMP!",), "CAST(floor(epoch_us({0}) / 1000000) AS BIGINT)", B),
    Scalar("unix_timestamp", (T,), "(epoch_us({0}) // 1000000)", B),
    Scalar("unix_date", ("DATE!",), "CAST({0} - DATE '1970-01-01' AS INTEGER)", I),
    Scalar("date_from_unix_date", (I,), in_calendar("TRY(DATE '1970-01-01' + {0})", DAY), DAY),
    Scalar("timestamp_micros", (B,), in_calendar("TRY(make_timestamp({0}))", T), T),
    Scalar("timestamp_millis", (B,), in_calendar("TRY(make_timestamp({0} * 1000))", T), T),
    Scalar("timestamp_seconds", (B,), in_calendar("TRY(make_timestamp({0} * 1000000))", T), T),
    Scalar("make_date", (I, I, I), in_calendar("TRY(make_date({0}, {1}, {2}))", DAY), DAY),
    also={"dayofmonth": "day", "date_diff": "datediff", "dateadd": "date_add"},
)
