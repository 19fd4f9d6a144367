"""Intervals, as they are added to dates and times: months and microseconds.

A date or time that is computed and lies outside the years 1 to 9999 is NULL: such a value could be
neither shown nor sent. This is the one place where an answer differs from Spark's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp

from headrace.certified.casts import cast
from headrace.certified.typed import TypedSql, not_available
from headrace.core.time import DAY, HOUR, MICROSECOND, MILLISECOND, MINUTE, SECOND

_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_MICROS = {
    "microsecond": MICROSECOND, "millisecond": MILLISECOND, "second": SECOND, "minute": MINUTE,
    "hour": HOUR, "day": DAY, "week": 7 * DAY,
}  # fmt: skip


# More than the years 1 to 9999 have.
DAYS_MAX, MONTHS_MAX = 3_700_000, 120_000


@dataclass(frozen=True, slots=True)
class CalendarInterval:
    months: int = 0
    micros: int = 0

    @property
    def too_long(self) -> bool:
        """Whether it leads out of the calendar from anywhere in it."""
        return abs(self.months) > MONTHS_MAX or abs(self.micros) > DAYS_MAX * DAY

    def negated(self) -> CalendarInterval:
        return CalendarInterval(-self.months, -self.micros)


def read_interval(node: exp.Interval) -> CalendarInterval:
    """INTERVAL 1 MONTH, INTERVAL '1' DAY, INTERVAL '1 day 2 hours'."""
    unit = node.args.get("unit")
    text = node.this.name if isinstance(node.this, exp.Literal) else ""
    parts = [(text, unit.name)] if unit else re.findall(r"([+-]?\d+)\s*([a-zA-Z]+)", text)
    known = [(number, name.lower().removesuffix("s")) for number, name in parts]
    if not known or not all(_is_known(number, name) for number, name in known):
        raise not_available(f"the interval {node.sql()}")
    months = sum(int(number) * _MONTHS.get(name, 0) for number, name in known)
    micros = sum(int(number) * _MICROS.get(name, 0) for number, name in known)
    if months and micros:
        raise not_available("an interval of months and days together")
    return CalendarInterval(months, micros)


def _is_known(number: str, unit: str) -> bool:
    return bool(re.fullmatch(r"[+-]?\d+", number)) and (unit in _MONTHS or unit in _MICROS)


def unit_of(edge: object) -> str | None:
    """The unit of an interval at the edge of a frame; None if it is something else."""
    if not isinstance(edge, exp.Interval):
        return None
    unit = edge.args.get("unit")
    return unit.name.lower().removesuffix("s") if unit else ""


def frame_edge(node: exp.Interval, order: str) -> str:
    """An interval as the edge of a RANGE frame over dates or times."""
    by = read_interval(node)
    if order not in {"DATE", "TIMESTAMP"} or (order == "DATE" and by.micros % DAY):
        raise not_available(f"a frame of {node.sql()} in the order of {order}")
    if min(by.months, by.micros) < 0 or by.too_long:
        raise not_available(f"a frame of {node.sql()}")
    return _duration(by)


def shifted(value: TypedSql, by: CalendarInterval) -> TypedSql:
    """A date or time, so much later. A date stays one unless hours are added to it."""
    if by.too_long and value.type in {"DATE", "TIMESTAMP"}:
        return value.as_type(f"CAST(NULL AS {value.type})", value.type)
    if value.type == "DATE" and by.micros % DAY == 0:
        later = f"CAST({_later(value.sql, by)} AS DATE)"
        return value.as_type(in_calendar(later, "DATE"), "DATE")
    if value.type not in {"DATE", "TIMESTAMP"}:
        raise not_available(f"an interval added to {value.type}")
    time = cast(value, "TIMESTAMP")
    return time.as_type(in_calendar(_later(time.sql, by), "TIMESTAMP"), "TIMESTAMP")


def in_calendar(sql: str, type: str) -> str:
    """The date or time, or NULL outside the years 1 to 9999."""
    last = "9999-12-31" if type == "DATE" else "9999-12-31 23:59:59.999999"
    first = "0001-01-01" if type == "DATE" else "0001-01-01 00:00:00"
    limits = f"{type} '{first}' AND {type} '{last}'"
    return f"CASE WHEN {sql} BETWEEN {limits} THEN {sql} END"


def within(sql: str, limit: int) -> str:
    """A number that is added to a date or time, or NULL where the sum lies outside the calendar
    anyway: DuckDB would raise an error, and takes no window function within TRY.
    """
    return f"CASE WHEN {sql} BETWEEN -{limit} AND {limit} THEN {sql} END"


def _later(sql: str, by: CalendarInterval) -> str:
    return f"({sql} + {_duration(by)})"


def _duration(by: CalendarInterval) -> str:
    return f"to_months({by.months})" if by.months else f"to_microseconds({by.micros})"
