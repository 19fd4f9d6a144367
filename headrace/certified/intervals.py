"""Intervals, as they are added to dates and times: months and microseconds.

A date or time that is computed and lies outside the years 1 to 9999 is NULL: such a value could be
neither shown nor sent. This is the one place where an answer differs from Spark's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from sqlglot import exp

from headrace.certified.casts import cast
from headrace.certified.typed import OUTSIDE_CALENDAR, TypedSql, not_available
from headrace.certified.types import TIMES
from headrace.core.time import DAY, HOUR, MICROSECOND, MILLISECOND, MINUTE, SECOND

_MONTHS = {"month": 1, "year": 12}
_MICROS = {
    "microsecond": MICROSECOND, "millisecond": MILLISECOND, "second": SECOND, "minute": MINUTE,
    "hour": HOUR, "day": DAY, "week": 7 * DAY,
}  # fmt: skip
_PART = re.compile(r"\s*([+-]?)\s*(\d+(?:\.\d{0,9})?|\.\d{1,9})\s+([a-z]+?)s?(?=\s|$)")
_HINT = "only seconds may have a fraction: INTERVAL '1 day -2.5 seconds'."

# More than the years 1 to 9999 have.
DAYS_MAX, MONTHS_MAX = 3_700_000, 120_000


@dataclass(frozen=True, slots=True)
class CalendarInterval:
    months: int = 0
    micros: int = 0
    timed: bool = False  # it has a unit below the day, so that a date becomes a time

    @property
    def too_long(self) -> bool:
        """Whether it leads out of the calendar from anywhere in it."""
        return abs(self.months) > MONTHS_MAX or abs(self.micros) > DAYS_MAX * DAY

    def negated(self) -> CalendarInterval:
        return replace(self, months=-self.months, micros=-self.micros)


def read_interval(node: exp.Expr) -> CalendarInterval | None:
    """INTERVAL 1 MONTH, INTERVAL '1 day -2.5 hours', INTERVAL 1 DAY 2 HOURS or a sum of these; None
    if it is something else.
    """
    parts = [part for interval in _summed(node) for part in _parts(interval)]
    months = sum(int(number * _MONTHS.get(unit, 0)) for number, unit in parts)
    micros = sum(int(number * _MICROS.get(unit, 0)) for number, unit in parts)
    if months and micros:
        raise not_available("an interval that combines months and days")
    timed = any(_MICROS.get(unit, DAY) < DAY for _, unit in parts)
    return CalendarInterval(months, micros, timed) if parts else None


def _summed(node: exp.Expr) -> list[exp.Interval]:
    """The intervals that are added; none if it is not a sum of intervals alone."""
    if isinstance(node, exp.Interval):
        return [node]
    if isinstance(node, exp.Paren):
        return _summed(node.this)
    # The right side first: the left one of a long sum is a deep tree.
    last = _summed(node.expression) if isinstance(node, exp.Add) else []
    first = _summed(node.this) if last else []
    return first + last if first else []


def _parts(interval: exp.Interval) -> Iterator[tuple[Decimal, str]]:
    """The numbers and units, as Spark reads them."""
    unit = interval.args.get("unit")
    text = interval.this.name if isinstance(interval.this, exp.Literal) else ""
    text = f"{text} {unit.name if isinstance(unit, exp.Var) else '?'}" if unit else text
    text, place = text.lower().rstrip(), 0
    while place < len(text) or not place:
        found = _PART.match(text, place)
        if found is None or not _is_known(found[2], found[3]):
            raise not_available(f"the interval {interval.sql()}", _HINT)
        yield Decimal(found[1] + found[2]), found[3]
        place = found.end()


def _is_known(number: str, unit: str) -> bool:
    return unit == "second" or ("." not in number and (unit in _MONTHS or unit in _MICROS))


def unit_of(edge: object) -> str | None:
    """The unit of an interval at the edge of a frame; None if it is something else."""
    if not isinstance(edge, exp.Interval):
        return None
    unit = edge.args.get("unit")
    return unit.name.lower().removesuffix("s") if unit else ""


def frame_edge(node: exp.Interval, order: str) -> str:
    """An interval as the edge of a RANGE frame over dates or times."""
    by = read_interval(node)
    if by is None or order not in TIMES or (order == "DATE" and by.timed):
        raise not_available(f"a window frame of {node.sql()} with ORDER BY {order}")
    if min(by.months, by.micros) < 0 or by.too_long:
        raise not_available(f"a window frame of {node.sql()}")
    return _duration(by)


def shifted(value: TypedSql, by: CalendarInterval) -> TypedSql:
    """A date or time, so much later. A date stays one unless hours are added to it."""
    if value.type not in TIMES:
        raise not_available(f"an interval added to {value.type}")
    value = cast(value, "TIMESTAMP") if by.timed else value
    later = "NULL" if by.too_long else f"{value.sql} + {_duration(by)}"
    return in_calendar(value.as_type(f"CAST({later} AS {value.type})", value.type))


def in_calendar(computed: TypedSql) -> TypedSql:
    """The date or time, or NULL outside the years 1 to 9999."""
    type, sql = computed.type, computed.sql
    last = "9999-12-31" if type == "DATE" else "9999-12-31 23:59:59.999999"
    first = "0001-01-01" if type == "DATE" else "0001-01-01 00:00:00"
    limits = f"{type} '{first}' AND {type} '{last}'"
    clipped = computed.as_type(f"CASE WHEN {sql} BETWEEN {limits} THEN {sql} END", type)
    return replace(clipped, deviation=OUTSIDE_CALENDAR)


def within(sql: str, limit: int) -> str:
    """A number that is added to a date or time, or NULL where the sum lies outside the calendar
    anyway: DuckDB would raise an error, and takes no window function within TRY.
    """
    return f"CASE WHEN {sql} BETWEEN -{limit} AND {limit} THEN {sql} END"


def _duration(by: CalendarInterval) -> str:
    return f"to_months({by.months})" if by.months else f"to_microseconds({by.micros})"
