"""A join of two streams: equal keys and a bound on both event times, and which of its rows are new.

With d = right's time - left's time, the bound says lower_us <= d <= upper_us. So an event at t is
done with when the other stream's watermark has passed its last moment: t + upper_us for the left,
t - lower_us for the right. The relations of a joined flow hold `_new` in each row, and the SQL made
here gives the rows that were not in the answer before:
    rows(all) = rows(old) + new_rows(old, new), but for outer rows that a late partner withdraws.
Batch runs it with every event new. tests/laws/test_joins.py checks the equation at every cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sqlglot import exp

from headrace.compile.plan import JoinPlan
from headrace.core.errors import Unsupported
from headrace.core.event import OFFSET
from headrace.core.origin import Origin
from headrace.core.time import duration_us
from headrace.define.dialect import parse_query, sql_of

NEW = "_new"
KINDS = {"": "INNER", "LEFT": "LEFT", "RIGHT": "RIGHT", "FULL": "FULL"}


@dataclass(frozen=True, slots=True)
class Side:
    """One stream of a join: its name in the query, its base, and the column of its event time."""

    alias: str
    stream: str
    time: str

    @property
    def moment(self) -> str:
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
    left: Side
    right: Side
    lower_us: int
    upper_us: int

    @property
    def flow(self) -> str:
        return f"{self.left.stream}+{self.right.stream}"

    @property
    def numbers(self) -> tuple[int, int]:
        """The places of the two streams in the flow, which are one in a join with itself."""
        return 0, int(self.left.stream != self.right.stream)


# Rows that are new


def changed(select: exp.Select, join: StreamJoin) -> None:
    """Let a SELECT over the joined streams give only the rows that are new."""
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
    """The row's last moment has passed, and had not before unless the event itself is new."""
    side, last, other = _waiting(join, left)
    before = f"coalesce({last} < :before_{other}, false)"
    return f"({last} < :after_{other} AND ({side.new} OR NOT {before}))"


def _waiting(join: StreamJoin, left: bool) -> tuple[Side, str, int]:
    """A side, the last moment of a partner of its event, and the number of the other stream."""
    one, other = join.numbers
    if left:
        return join.left, f"({join.left.moment} + {join.upper_us})", other
    return join.right, f"({join.right.moment} - {join.lower_us})", one


def _without_older_partner(semi: exp.Join, join: StreamJoin) -> exp.Join:
    """An old event that had a partner before has been counted then."""
    on = f"({sql_of(semi.args['on'])}) AND NOT {join.left.new}"
    older = f"(SELECT * FROM {sql_of(semi.this)} WHERE NOT {join.right.new})"
    query = f"SELECT 1 FROM x LEFT ANTI JOIN {older} AS `{join.right.alias}` ON {on}"
    found: exp.Join = parse_query(query, Origin("join", 1)).args["joins"][0]
    return found


def withdrawn(select: exp.Select, join: StreamJoin) -> tuple[str, ...]:
    """SQL that counts the outer rows whose event has found its first partner only now."""
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


# How the bound is read


class BoundReader:
    """Reads the ON of a join; `side_of` says which stream a column belongs to, if any."""

    def __init__(
        self, left: Side, right: Side, side_of: Callable[[exp.Column], Side | None], name: str
    ) -> None:
        self.left, self.right, self.side_of, self.name = left, right, side_of, name
        self.lowers: list[int] = []
        self.uppers: list[int] = []
        self.keys = 0

    def read(self, on: exp.Expr | None, origin: Origin) -> tuple[int, int]:
        """The bound as (lower_us, upper_us)."""
        for condition in on.flatten() if isinstance(on, exp.And) else [on] if on else []:
            self._take(condition.unnest())
        if not self.keys:
            raise Unsupported(
                f"'{self.name}' joins streams without an equal key",
                detail="each event would have to be compared with every other.",
                hint="write ON left.key = right.key AND a bound on both event times.",
                origin=origin,
            )
        if not self.lowers or not self.uppers:
            raise Unsupported(
                f"'{self.name}' joins streams without a bound on how far apart their events are",
                detail="an event would have to be kept for ever, since its partner could still "
                f"come. Event times are {self._shown(self.left)} and {self._shown(self.right)}.",
                hint=f"bound it from both sides: {self._example()}.",
                origin=origin,
            )
        if max(self.lowers) > min(self.uppers):
            raise Unsupported(
                f"'{self.name}' joins streams with a bound that no two events can meet",
                hint="the earlier end of the bound comes first.",
                origin=origin,
            )
        return max(self.lowers), min(self.uppers)

    def _shown(self, side: Side) -> str:
        return f"{side.alias}.{side.time}"

    def _example(self) -> str:
        left, right = self._shown(self.left), self._shown(self.right)
        return f"AND {right} BETWEEN {left} AND {left} + INTERVAL 10 MINUTES"

    def _take(self, condition: exp.Expr) -> None:
        if isinstance(condition, exp.Between):
            self._compare(exp.GTE, condition.this, condition.args["low"])
            self._compare(exp.LTE, condition.this, condition.args["high"])
        elif isinstance(condition, exp.GTE | exp.GT | exp.LTE | exp.LT):
            self._compare(type(condition), condition.left, condition.right)
        elif isinstance(condition, exp.EQ):
            sides = [self._sides(part) for part in (condition.left, condition.right)]
            pair = [{self.left.alias}, {self.right.alias}]
            self.keys += sides in (pair, pair[::-1])
            self._compare(exp.GTE, condition.left, condition.right)
            self._compare(exp.LTE, condition.left, condition.right)

    def _sides(self, expression: exp.Expr) -> set[str]:
        found = (self.side_of(column) for column in expression.find_all(exp.Column))
        return {side.alias if side else "" for side in found}

    def _compare(self, kind: type[exp.Expr], one: exp.Expr, other: exp.Expr) -> None:
        """Take `one >= other` and the like as a bound, if both are event times."""
        first, second = self._moment(one), self._moment(other)
        if first is None or second is None or first[0] == second[0]:
            return
        greater, strict = kind in (exp.GTE, exp.GT), int(kind in (exp.GT, exp.LT))
        distance = second[1] - first[1]
        if first[0] is self.left:
            greater, distance = not greater, -distance
        if greater:
            self.lowers.append(distance + strict)
        else:
            self.uppers.append(distance - strict)

    def _moment(self, expression: exp.Expr) -> tuple[Side, int] | None:
        """An event time and what is added to it, for `o.ts + INTERVAL 1 HOUR`."""
        expression = expression.unnest()
        if isinstance(expression, exp.Column):
            side = self.side_of(expression)
            return (side, 0) if side and expression.name.lower() == side.time.lower() else None
        if not isinstance(expression, exp.Add | exp.Sub):
            return None
        found = self._moment(expression.left)
        if found is None or not isinstance(expression.right, exp.Interval):
            return None
        sign = 1 if isinstance(expression, exp.Add) else -1
        length = _length(expression.right)
        return None if length is None else (found[0], found[1] + sign * length)


def _length(interval: exp.Interval) -> int | None:
    try:
        return duration_us(f"{interval.this.name} {interval.args.get('unit') or ''}")
    except ValueError:
        return None


def place(aliases: Iterable[str], column: str) -> str:
    """A hidden column of a row: the left event's, or the right's where there is no left one."""
    columns = [_column(alias, column) for alias in aliases]
    return columns[0] if len(columns) == 1 else f"coalesce({', '.join(columns)})"
