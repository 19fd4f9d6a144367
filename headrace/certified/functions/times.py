"""Functions of dates and times, in UTC. Spark's calendar is proleptic Gregorian, and so is
DuckDB's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from headrace.certified.casts import cast
from headrace.certified.function import Scalar, rows
from headrace.certified.intervals import DAYS_MAX, MONTHS_MAX, in_calendar, within
from headrace.certified.typed import TypedSql, combine, not_available, text_literal
from headrace.core.time import FIRST, LAST

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
    "h": "%-I", "y": "%Y", "m": "%-M", "s": "%-S",
}  # fmt: skip
_QUARTERS = {"q", "Q"}
_DAY_US = 86_400_000_000
_UNITS_US = {
    "microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000,
    "hour": 3_600_000_000, "day": _DAY_US, "week": 7 * _DAY_US,
}  # fmt: skip
_UNITS_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def _date_trunc(arguments: Sequence[TypedSql]) -> TypedSql:
    unit = _TRUNC.get((arguments[0].literal or "").lower())
    if unit is None:
        raise not_available(f"date_trunc('{arguments[0].literal}', …)")
    value = arguments[1]
    return value.as_type(f"CAST(date_trunc('{unit}', {value.sql}) AS TIMESTAMP)", T)


def _trunc(arguments: Sequence[TypedSql]) -> TypedSql:
    unit = _TRUNC.get((arguments[1].literal or "").lower())
    if unit not in _OF_DATES:
        raise not_available(f"trunc(…, '{arguments[1].literal}')")
    value = arguments[0]
    return value.as_type(f"CAST(date_trunc('{unit}', {value.sql}) AS DATE)", DAY)


def _date_format(arguments: Sequence[TypedSql]) -> TypedSql:
    pattern = arguments[1].literal or ""
    value, words = arguments[0], re.finditer(r"'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z']+", pattern)
    said: list[str | None] = [""]  # what strftime writes; None is the quarter, which it cannot
    for word in words:
        if word.group() in _QUARTERS:
            said += [None, ""]
        else:
            said[-1] = f"{said[-1]}{_directive(word.group(), pattern)}"
    parts = [_formatted(value.sql, part) for part in said if part != ""]
    return value.as_type(f"({' || '.join(parts)})" if parts else f"strftime({value.sql}, '')", S)


def _formatted(sql: str, directives: str | None) -> str:
    if directives is None:
        return f"CAST(quarter({sql}) AS VARCHAR)"
    return f"strftime({sql}, {text_literal(directives)})"


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


def _add_months(arguments: Sequence[TypedSql]) -> TypedSql:
    value, months = arguments
    sql = f"CAST({value.sql} + to_months({within(months.sql, MONTHS_MAX)}) AS DATE)"
    return in_calendar(combine(arguments, sql, DAY))


def _computed(name: str, takes: tuple[str, ...], sql: str, gives: str) -> Scalar:
    """A function that leads out of the calendar."""

    def make(given: Sequence[TypedSql]) -> TypedSql:
        return in_calendar(combine(given, sql.format(*(value.sql for value in given)), gives))

    return Scalar(name, takes, make)


def _date_part(arguments: Sequence[TypedSql]) -> TypedSql:
    name = (arguments[0].literal or "").lower()
    field = next((field for names, field in _FIELDS.items() if name in names.split()), None)
    if field is None:
        known = ", ".join(names.split()[0] for names in _FIELDS)
        what = f"the field '{arguments[0].literal}' of a timestamp"
        raise not_available(what, f"available fields: {known}.")
    return field.call(arguments[1:])


# A difference in months counts whole ones, as Java does: the day of the month decides, and where
# days are equal the time of the day.
_PACKED = "((year({0}) * 12 + month({0})) * 32 + day({0}))"
_LAST = (
    "(CAST({1} AS DATE) + CASE "
    "WHEN CAST({1} AS DATE) > CAST({0} AS DATE) AND CAST({1} AS TIME) < CAST({0} AS TIME) THEN -1 "
    "WHEN CAST({1} AS DATE) < CAST({0} AS DATE) AND CAST({1} AS TIME) > CAST({0} AS TIME) THEN 1 "
    "ELSE 0 END)"
)
_MONTHS = f"(({_PACKED.replace('{0}', _LAST)} - {_PACKED}) // 32)"


def _timestampdiff(arguments: Sequence[TypedSql]) -> TypedSql:
    unit, (a, b) = (arguments[0].literal or "").lower(), arguments[1:]
    if micros := _UNITS_US.get(unit):
        sql = f"((epoch_us({b.sql}) - epoch_us({a.sql})) // {micros})"
    elif months := _UNITS_MONTHS.get(unit):
        sql = f"CAST({_MONTHS.format(a.sql, b.sql)} // {months} AS BIGINT)"
    else:
        raise not_available(f"timestampdiff with the unit '{arguments[0].literal}'")
    return combine((a, b), sql, B)


# Whole months where both are the same or the last day of their month; else a month has 31 days.
_MONTHS_APART = "((year({0}) - year({1})) * 12 + month({0}) - month({1}))"
_SECONDS_OF_DAY = "(hour({0}) * 3600 + minute({0}) * 60 + second({0}))"
_SECONDS_APART = (
    "((day({0}) - day({1})) * 86400 + "
    f"{_SECONDS_OF_DAY} - {_SECONDS_OF_DAY.replace('{0}', '{1}')})"
)
_MONTHS_BETWEEN = (
    "CASE WHEN day({0}) = day({1}) OR (CAST({0} AS DATE) = last_day({0}) "
    f"AND CAST({{1}} AS DATE) = last_day({{1}})) THEN CAST({_MONTHS_APART} AS DOUBLE) "
    f"ELSE floor(({_MONTHS_APART} + {_SECONDS_APART} / CAST(2678400 AS DOUBLE)) * 1e8 + 0.5) / 1e8 "
    "END"
)


# The fields of extract and date_part, by the names that Spark gives them.
_FIELDS = {
    "year y years yr yrs": _field("year", "year({0})", DAY),
    "yearofweek": _field("yearofweek", "isoyear({0})", DAY),
    "quarter qtr": _field("quarter", "quarter({0})", DAY),
    "month mon mons months": _field("month", "month({0})", DAY),
    "week w weeks": _field("week", "weekofyear({0})", DAY),
    "day d days": _field("day", "day({0})", DAY),
    "dayofweek dow": _field("dayofweek", "dayofweek({0}) + 1", DAY),
    "dayofweek_iso dow_iso": _field("dayofweek_iso", "isodow({0})", DAY),
    "doy": _field("doy", "dayofyear({0})", DAY),
    "hour h hours hr hrs": _field("hour", "hour({0})"),
    "minute m min mins minutes": _field("minute", "minute({0})"),
    "second s sec seconds secs": Scalar(
        "second",
        (T,),
        "CAST(CAST(microsecond({0}) AS DECIMAL(14,0)) * 0.000001 AS DECIMAL(8,6))",
        "DECIMAL(8,6)",
    ),
}


def _timestamp_micros(given: Sequence[TypedSql]) -> TypedSql:
    [value] = given
    made = combine(given, f"make_timestamp({value.sql})", T)
    if value.bounds and value.bounds[0] >= FIRST and value.bounds[1] <= LAST:
        return replace(made, bounds=value.bounds)
    return in_calendar(replace(made, sql=f"TRY({made.sql})"))


def _unix_micros(given: Sequence[TypedSql]) -> TypedSql:
    made = given[0].as_type(f"epoch_us({given[0].sql})", B)
    return replace(made, bounds=given[0].bounds)


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
    _computed("date_add", (DAY, I), f"({{0}} + {within('{1}', DAYS_MAX)})", DAY),
    _computed("date_sub", (DAY, I), f"({{0}} - {within('{1}', DAYS_MAX)})", DAY),
    Scalar("datediff", (DAY, DAY), "CAST({0} - {1} AS INTEGER)", I),
    Scalar("add_months", (DAY, I), _add_months),
    Scalar("timestampdiff", ("LITERAL", T, T), _timestampdiff),
    Scalar("months_between", (T, T), _MONTHS_BETWEEN, "DOUBLE"),
    Scalar("date_part", ("LITERAL", T), _date_part),
    Scalar("dayname", (DAY,), "strftime({0}, '%a')", S),
    Scalar("monthname", (DAY,), "strftime({0}, '%b')", S),
    Scalar("to_date", (DAY,), "{0}", DAY),
    Scalar("to_timestamp", ("ANY",), lambda given: cast(given[0], T)),
    Scalar("date", ("ANY",), lambda given: cast(given[0], DAY)),
    Scalar("timestamp", ("ANY",), lambda given: cast(given[0], T)),
    Scalar("unix_micros", ("TIMESTAMP!",), _unix_micros),
    Scalar("unix_millis", ("TIMESTAMP!",), "CAST(floor(epoch_us({0}) / 1000) AS BIGINT)", B),
    Scalar("unix_seconds", ("TIMESTAMP!",), "CAST(floor(epoch_us({0}) / 1000000) AS BIGINT)", B),
    Scalar("unix_timestamp", (T,), "(epoch_us({0}) // 1000000)", B),
    Scalar("unix_date", ("DATE!",), "CAST({0} - DATE '1970-01-01' AS INTEGER)", I),
    _computed("date_from_unix_date", (I,), "TRY(DATE '1970-01-01' + {0})", DAY),
    Scalar("timestamp_micros", (B,), _timestamp_micros),
    _computed("timestamp_millis", (B,), "TRY(make_timestamp({0} * 1000))", T),
    _computed("timestamp_seconds", (B,), "TRY(make_timestamp({0} * 1000000))", T),
    _computed("make_date", (I, I, I), "TRY(make_date({0}, {1}, {2}))", DAY),
    also={
        "dayofmonth": "day",
        "date_diff": "datediff",
        "dateadd": "date_add",
        "datepart": "date_part",
    },
)
