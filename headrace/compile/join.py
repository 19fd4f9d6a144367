"""A join of two streams: equal keys and a bound on both event times, and which of its rows are new.

With d = right's time - left's time, the bound is lower_us <= d <= upper_us. So an event at t can
have no more partners when the other stream's watermark is after t + upper_us (left event) or
t - lower_us (right event). The relations of a joined flow have the column `_new`, and the SQL made
here gives the rows that were not in the answer before:
    rows(all) = rows(old) + new_rows(old, new), except outer rows that a late partner withdraws.
Batch runs it with every event new. tests/laws/test_joins.py checks the equation at every cut.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from headrace.compile.plan import JoinPlan
from headrace.core.event import OFFSET
from headrace.core.origin import Origin
from headrace.define.dialect import parse_query, sql_of

NEW = "_new"
KINDS = {"": "INNER", "LEFT": "LEFT", "RIGHT": "RIGHT", "FULL": "FULL"}


@dataclass(frozen=True, slots=True)
class JoinSide:
    """One stream of a join: its alias, its declared stream, and the column of its event time."""

    alias: str
    stream: str
    time: str

    @property
    def time_us(self) -> str:
        return f"unix_micros({_column(self.alias, self.time)})"

    @property
    def there(self) -> str:
        return f"{_column(self.alias, OFFSET)} IS NOT NULL"

    @property
    def new(self) -> str:
        return _column(self.alias, NEW)


@dataclass(frozen=True, slots=True)
class StreamJoin:
    """Two streams, how they are joined, and how far apart their events may be."""

    kind: str  # INNER, LEFT, RIGHT, FULL or SEMI
    left: JoinSide
    right: JoinSide
    lower_us: int
    upper_us: int

    @property
    def numbers(self) -> tuple[int, int]:
        """The indexes of the two streams in the flow; the same in a self-join."""
        return 0, int(self.left.stream != self.right.stream)


def changed(select: exp.Select, join: StreamJoin) -> None:
    """Restrict a SELECT over the joined streams to new rows."""
    if join.kind == "SEMI":
        joins = select.args["joins"]
        joins.insert(1, _without_older_partner(joins[0], join))
        return
    both = f"({join.left.new} OR {join.right.new})"
    left, right = _closed(join, left=True), _closed(join, left=False)
    text = {
        "INNER": both,
        "LEFT": f"CASE WHEN {join.right.there} THEN {both} ELSE {left} END",
        "RIGHT": f"CASE WHEN {join.left.there} THEN {both} ELSE {right} END",
        "FULL": f"CASE WHEN {join.left.there} AND {join.right.there} THEN {both} "
        f"WHEN {join.left.there} THEN {left} ELSE {right} END",
    }[join.kind]
    select.where(_condition(text), copy=False)


def _closed(join: StreamJoin, *, left: bool) -> str:
    """SQL: the event can have no more partners now, and could before or is itself new."""
    side, last, other = _waiting(join, left)
    before = f"coalesce({last} < :before_{other}, false)"
    return f"({last} < :after_{other} AND ({side.new} OR NOT {before}))"


def _waiting(join: StreamJoin, left: bool) -> tuple[JoinSide, str, int]:
    """A side, the last possible time of its event's partner, and the index of the other stream."""
    one, other = join.numbers
    if left:
        return join.left, f"({join.left.time_us} + {join.upper_us})", other
    return join.right, f"({join.right.time_us} - {join.lower_us})", one


def _without_older_partner(semi: exp.Join, join: StreamJoin) -> exp.Join:
    """An anti-join with old partners: an old event that had a partner was counted then."""
    on = f"({sql_of(semi.args['on'])}) AND NOT {join.left.new}"
    older = f"(SELECT * FROM {sql_of(semi.this)} WHERE NOT {join.right.new})"
    query = f"SELECT 1 FROM x LEFT ANTI JOIN {older} AS `{join.right.alias}` ON {on}"
    found: exp.Join = parse_query(query, Origin("join", 1)).args["joins"][0]
    return found


def withdrawn(select: exp.Select, join: StreamJoin) -> tuple[str, ...]:
    """SQL that counts the outer rows whose event has its first, late partner now."""
    sides = {"LEFT": (True,), "RIGHT": (False,), "FULL": (True, False)}.get(join.kind, ())
    return tuple(_withdrawn(select, join, left) for left in sides)


def _withdrawn(select: exp.Select, join: StreamJoin, left: bool) -> str:
    first = select.args["joins"][0]
    relations = select.args["from_"].this, first.this
    mine, theirs = relations if left else reversed(relations)
    side, last, number = _waiting(join, left)
    other = join.right if left else join.left
    on = sql_of(first.args["on"])
    return (
        f"SELECT count(*) FROM {sql_of(mine)} "
        f"LEFT SEMI JOIN (SELECT * FROM {sql_of(theirs)} WHERE {other.new}) AS `{other.alias}` "
        f"ON {on} LEFT ANTI JOIN (SELECT * FROM {sql_of(theirs)} WHERE NOT {other.new}) "
        f"AS `{other.alias}` ON {on} WHERE NOT {side.new} AND {last} < :before_{number}"
    )


def join_plan(select: exp.Select, join: StreamJoin) -> JoinPlan:
    return JoinPlan(
        join.left.stream, join.right.stream, join.lower_us, join.upper_us, withdrawn(select, join)
    )


def _condition(text: str) -> exp.Expr:
    found: exp.Expr = parse_query(f"SELECT {text}", Origin("join", 1)).expressions[0]
    return found


def _column(alias: str, name: str) -> str:
    return sql_of(exp.column(name, table=alias))


def place(aliases: Iterable[str], column: str) -> str:
    """A hidden column of a row: that of the left event, or of the right one if there is no left."""
    columns = [_column(alias, column) for alias in aliases]
    return columns[0] if len(columns) == 1 else f"coalesce({', '.join(columns)})"
