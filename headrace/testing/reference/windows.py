"""Which windows an event is in, for every kind of window: `windowed(call, keys, rows)`.

    window(ts, size[, slide[, offset]])    all [w, w + size) with w = offset (mod slide)
    landmark_window(ts, landmark)          the one window from the landmark on, without an end
    session_window(ts, gap)                of each key: [ts, ts + gap), joined where they touch
    count_window(n[, slide])               of each key: [w, w + n) of its events' numbers in ORDER
    punctuated_window(ends[, size[, age]]) of each key: up to and with the event that ends it

A row comes out once for each window that it is in; a row without a time is in none. As in Spark, an
event exactly at a session's end still joins it, and one whose gap is NULL, zero, negative or not an
interval is in no session. tests/testing/test_windows.py checks each kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sqlglot import exp

from headrace.core.errors import BadDefinition, Unsupported
from headrace.testing.reference.casts import cast
from headrace.testing.reference.expressions import evaluate, true
from headrace.testing.reference.order import by_key, event_time, in_order
from headrace.testing.reference.timestamps import interval, starts_of, windows_of
from headrace.testing.reference.values import Duration, Row, Timestamp, TimeWindow, Value

Placed = Iterator[tuple[Row, Value]]  # a row and a window that it is in


def window_call(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name in _OF_ROWS | _OF_KEYS


def windowed(call: exp.Expr, keys: Iterable[exp.Expr], rows: list[Row]) -> Placed:
    """Each row with each of its windows; `keys` are the query's other group keys."""
    if call.name in _OF_ROWS:
        return ((row, w) for row in rows for w in _OF_ROWS[call.name](call, row))
    place = _OF_KEYS[call.name]
    return (found for group in by_key(keys, rows) for found in place(call, group))


def _time_windows(call: exp.Expr, row: Row) -> Iterator[TimeWindow]:
    time, *lengths = [evaluate(argument, row) for argument in call.expressions]
    moment = cast(time, "TIMESTAMP")
    if not isinstance(moment, Timestamp):
        return iter(())
    length, slide, offset = (interval(text, None).us for text in _three(lengths))
    return windows_of(moment, length, slide, offset)


def _three(lengths: list[Value]) -> tuple[str, str, str]:
    """Length, slide and offset of window(ts, length[, slide[, offset]])."""
    if not lengths or not all(isinstance(text, str) for text in lengths):
        raise Unsupported("window size, slide and offset must be string literals")
    length = lengths[0]
    slide = lengths[1] if len(lengths) > 1 else length
    return length, slide, lengths[2] if len(lengths) > 2 else "0 seconds"


def _landmark_window(call: exp.Expr, row: Row) -> Iterator[TimeWindow]:
    moment, landmark = (cast(evaluate(part, row), "TIMESTAMP") for part in call.expressions)
    if landmark is None:
        raise BadDefinition(
            f"the second argument of {call.sql(dialect='spark')} is not a timestamp"
        )
    if moment is not None and moment >= landmark:
        yield TimeWindow(landmark, None)


def _sessions(call: exp.Expr, rows: list[Row]) -> Placed:
    """Rows in order of time; a session is open as long as the next row touches it."""
    spans = [(row, span) for row in rows if (span := _span(call, row))]
    spans.sort(key=lambda pair: pair[1])
    session: list[Row] = []
    start = end = 0
    for row, (begin, finish) in spans:
        if session and begin > end:
            yield from _in_one(session, start, end)
            session = []
        start, end = (start, max(end, finish)) if session else (begin, finish)
        session.append(row)
    yield from _in_one(session, start, end)


def _in_one(session: list[Row], start: int, end: int) -> Placed:
    return ((row, TimeWindow(Timestamp(start), Timestamp(end))) for row in session)


def _span(call: exp.Expr, row: Row) -> tuple[int, int] | None:
    time, gap = (evaluate(part, row) for part in call.expressions)
    moment, length = cast(time, "TIMESTAMP"), _gap_us(gap)
    return (moment.us, moment.us + length) if moment is not None and length > 0 else None


def _gap_us(gap: Value) -> int:
    """The length of a gap; zero, which makes no session, for a value that is not an interval."""
    if isinstance(gap, Duration):
        return gap.us
    try:
        return interval(gap, None).us if isinstance(gap, str) else 0
    except Unsupported:
        return 0


def _counted(call: exp.Expr, rows: list[Row]) -> Placed:
    length, slide = _numbers(call)
    for number, row in enumerate(in_order(rows)):
        yield from ((row, start) for start in starts_of(number, length, slide))


def _numbers(call: exp.Expr) -> tuple[int, int]:
    numbers = [evaluate(part, {}) for part in call.expressions]
    if not 1 <= len(numbers) <= 2 or not all(isinstance(n, int) and n > 0 for n in numbers):
        raise BadDefinition(
            f"count_window(n[, slide]) requires positive integers, got {call.sql(dialect='spark')}"
        )
    return numbers[0], numbers[-1]


def _punctuated(call: exp.Expr, rows: list[Row]) -> Placed:
    condition, size, age_us = _limits(call)
    number, held, first = 0, 0, None
    for row in in_order(rows):
        if held and age_us is not None and _age_us(row, first) > age_us:
            number, held = number + 1, 0
        first = event_time(row) if not held else first
        held += 1
        yield row, number
        if true(condition, row) or held == size:
            number, held = number + 1, 0


def _age_us(row: Row, first: Timestamp | None) -> int:
    time = event_time(row)
    if time is None or first is None:
        raise BadDefinition("punctuated_window with an age requires a stream with a watermark")
    return time.us - first.us


def _limits(call: exp.Expr) -> tuple[exp.Expr, int | None, int | None]:
    """The condition, the size and the age in microseconds; NULL is no limit."""
    condition, *limits = call.expressions
    size, age, *_ = [*(evaluate(limit, {}) for limit in limits), None, None]
    return condition, size, None if age is None else _gap_us(age)


_OF_ROWS: dict[str, Callable[[exp.Expr, Row], Iterator[TimeWindow]]] = {
    "window": _time_windows,
    "landmark_window": _landmark_window,
}
_OF_KEYS: dict[str, Callable[[exp.Expr, list[Row]], Placed]] = {
    "session_window": _sessions,
    "count_window": _counted,
    "punctuated_window": _punctuated,
}
