"""The ORDER of events: by event time, then by place in the log. It is total.

Event time is the value of the stream's watermark column. An event carries it under a name that no
column can have, so that also an event of a derived stream that left the column out has its place.
Where the stream has a watermark, an event without a time has no place in the order; where it has
none, the order is the place in the log alone.
tests/testing/test_order.py checks it.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from headrace.testing.reference.aggregates import log_position
from headrace.testing.reference.expressions import evaluate
from headrace.testing.reference.values import Row, Timestamp, Value, grouping

EVENT_TIME = "event time"


def event_time(row: Row) -> Timestamp | None:
    """The time of the row's event; of a pair of events, the left one's."""
    times = (value for (_, name), value in row.items() if name == EVENT_TIME)
    return next(times, None)


def in_order(rows: Iterable[Row]) -> list[Row]:
    """The rows that have a place in the order, in order."""
    placed = [row for row in rows if event_time(row) is not None or not _timed(row)]
    return sorted(placed, key=_place)


def by_key(keys: Iterable[exp.Expr], rows: Iterable[Row]) -> list[list[Row]]:
    """The rows of each key, keys as they first come."""
    expressions, groups = list(keys), dict[tuple[Value, ...], list[Row]]()
    for row in rows:
        key = tuple(grouping(evaluate(expression, row)) for expression in expressions)
        groups.setdefault(key, []).append(row)
    return list(groups.values())


def _timed(row: Row) -> bool:
    return any(name == EVENT_TIME for _, name in row)


def _place(row: Row) -> tuple[int, tuple[int, int]]:
    time = event_time(row)
    return time.us if time else 0, log_position(row)
