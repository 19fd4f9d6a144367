"""JOIN: which rows match, and which are kept without a partner.

Rows match where ON is true; unknown is not a match. INNER keeps the pairs and LEFT SEMI each left
row with a match once. LEFT, RIGHT and FULL keep the rows of one or both sides without a match, with
NULL for the other side: beside a table at once; beside a stream only when the other stream's
watermark has passed the last time at which a partner could arrive, which follows from the time
bound in ON. If one arrives later, the pair is in the answer and the unmatched row is not.
tests/testing/test_joins.py checks it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from headrace.core.errors import BadDefinition, Unsupported
from headrace.testing.reference.expressions import evaluate, true
from headrace.testing.reference.names import NameScope, resolve
from headrace.testing.reference.relations import Clock, SelectInput
from headrace.testing.reference.values import Key, Row, Timestamp

Kept = Callable[[Row], bool]  # whether a row without a match is kept
_LESS: dict[type[exp.Expr], int] = {exp.LT: 1, exp.LTE: 0}
_GREATER: dict[type[exp.Expr], int] = {exp.GT: 1, exp.GTE: 0}


def join_rows(left: SelectInput, join: exp.Join, right: SelectInput) -> SelectInput:
    """The rows of a join."""
    kind = _kind(join, streams=left.clock is not None and right.clock is not None)
    fields = left.fields + right.fields
    on = resolve(join.args.get("on") or exp.true(), NameScope(fields))
    clock = left.clock.slower(right.clock) if left.clock else None
    if kind == "SEMI":
        met = [row for row in left.rows if _partners(row, right.rows, on)]
        return SelectInput(left.fields, met, clock)
    rows = list(_pairs(left, right, on, _kept(on, left, right, kind in {"LEFT", "FULL"})))
    rows += _unmet(left, right, on, _kept(on, right, left, kind in {"RIGHT", "FULL"}))
    return SelectInput(fields, rows, clock)


def _kind(join: exp.Join, *, streams: bool) -> str:
    side, kind = join.side.upper(), join.kind.upper()
    known = {"", "LEFT", "RIGHT", "FULL"} if streams else {"", "LEFT"}
    kinds = {"", "INNER", "OUTER", "CROSS"} | ({"SEMI"} if streams else set())
    if side not in known or kind not in kinds or join.args.get("using"):
        raise Unsupported(
            f"the reference interpreter does not support {join.sql(dialect='spark').strip()}",
            hint="supported are INNER, LEFT and CROSS JOIN with ON; between two streams with "
            "watermarks also RIGHT, FULL and LEFT SEMI JOIN.",
        )
    return "SEMI" if kind == "SEMI" else side or "INNER"


def _partners(row: Row, others: list[Row], on: exp.Expr) -> list[Row]:
    return [row | other for other in others if true(on, row | other)]


def _pairs(left: SelectInput, right: SelectInput, on: exp.Expr, kept: Kept) -> Iterator[Row]:
    for row in left.rows:
        yield from _partners(row, right.rows, on) or ([row] if kept(row) else [])


def _unmet(left: SelectInput, right: SelectInput, on: exp.Expr, kept: Kept) -> list[Row]:
    """The rows of the right side without a match that are kept."""
    return [row for row in right.rows if kept(row) and not _partners(row, left.rows, on)]


def _kept(on: exp.Expr, mine: SelectInput, other: SelectInput, outer: bool) -> Kept:
    if not outer:
        return lambda row: False
    if mine.clock is None or other.clock is None:
        return lambda row: True
    return _waited(mine.clock.key, other.clock, _reach_us(on, mine.clock.key, other.clock.key))


def _waited(mine: Key, other: Clock, reach_us: int) -> Kept:
    def kept(row: Row) -> bool:
        time = row.get(mine)
        return time is not None and other.passed(time.us + reach_us)

    return kept


def _reach_us(on: exp.Expr, mine: Key, other: Key) -> int:
    """How long after an event of mine the last partner could be dated."""
    reaches = [
        _offset_us(large, mine) - _offset_us(small, other) - strict
        for small, large, strict in _bounds(on)
        if _columns(small) == {other} and _columns(large) == {mine}
    ]
    if not reaches:
        raise BadDefinition(
            "an outer join of streams requires a time bound",
            hint="write b.ts BETWEEN a.ts AND a.ts + INTERVAL 10 MINUTES in ON.",
        )
    return min(reaches)


def _bounds(on: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr, int]]:
    """The comparisons that must hold: the smaller side, the larger, and 1 if they may not meet."""
    for part in on.flatten() if isinstance(on, exp.And) else [on]:
        if isinstance(part, exp.Between):
            yield part.args["low"], part.this, 0
            yield part.this, part.args["high"], 0
        elif type(part) in _LESS:
            yield part.this, part.args["expression"], _LESS[type(part)]
        elif type(part) in _GREATER:
            yield part.args["expression"], part.this, _GREATER[type(part)]


def _columns(side: exp.Expr) -> set[Key]:
    return {(column.text("table"), column.name) for column in side.find_all(exp.Column)}


def _offset_us(side: exp.Expr, time: Key) -> int:
    """What is added to the time: the value of the side at time zero."""
    moment: Timestamp = evaluate(side, {time: Timestamp(0)})
    return moment.us
