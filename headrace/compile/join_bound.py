"""How far apart the events of a joined pair may be, read from ON.

`BETWEEN` and comparisons of the two event times, plus or minus INTERVAL literals, bound the
distance d = right's time - left's time from below and from above. Without both bounds events would
have to be kept without limit, so such a join is refused. tests/compile/test_join_bound.py reads the
forms of a bound.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from headrace.compile.join import JoinSide
from headrace.core.errors import Unsupported
from headrace.core.origin import Origin
from headrace.core.time import duration_us


class JoinBoundReader:
    """Reads the ON of a join; `side_of` says which stream a column belongs to, if any."""

    def __init__(
        self,
        left: JoinSide,
        right: JoinSide,
        side_of: Callable[[exp.Column], JoinSide | None],
        name: str,
    ) -> None:
        self.left, self.right, self.side_of, self.name = left, right, side_of, name
        self.lowers: list[int] = []
        self.uppers: list[int] = []
        self.keys = 0

    def read(self, on: exp.Expr | None, origin: Origin) -> tuple[int, int]:
        """The bound as (lower_us, upper_us)."""
        if on is not None:
            self._take(on)
        if not self.keys:
            raise Unsupported(
                f"'{self.name}' joins streams without an equality between keys",
                detail="each event would have to be compared with every other.",
                hint="write ON left.key = right.key AND a bound on both event times.",
                origin=origin,
            )
        if not self.lowers or not self.uppers:
            raise Unsupported(
                f"'{self.name}' joins streams without a bound on the distance between event times",
                detail="all events would have to be kept, because a partner could still arrive. "
                f"Event times are {self._shown(self.left)} and {self._shown(self.right)}.",
                hint=f"bound it from both sides: {self._example()}.",
                origin=origin,
            )
        if max(self.lowers) > min(self.uppers):
            raise Unsupported(
                f"'{self.name}' joins streams with a bound that no two events can satisfy",
                hint="swap the ends of the bound, so that the earlier one comes first.",
                origin=origin,
            )
        return max(self.lowers), min(self.uppers)

    def _shown(self, side: JoinSide) -> str:
        return f"{side.alias}.{side.time}"

    def _example(self) -> str:
        left, right = self._shown(self.left), self._shown(self.right)
        return f"AND {right} BETWEEN {left} AND {left} + INTERVAL 10 MINUTES"

    def _take(self, condition: exp.Expr) -> None:
        condition = condition.unnest()
        if isinstance(condition, exp.And):
            self._take(condition.left)
            self._take(condition.right)
        elif isinstance(condition, exp.Between):
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
        first, second = self._time(one), self._time(other)
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

    def _time(self, expression: exp.Expr) -> tuple[JoinSide, int] | None:
        """An event time and the microseconds added to it, for `o.ts + INTERVAL 1 HOUR`."""
        expression = expression.unnest()
        if isinstance(expression, exp.Column):
            side = self.side_of(expression)
            return (side, 0) if side and expression.name.lower() == side.time.lower() else None
        if not isinstance(expression, exp.Add | exp.Sub):
            return None
        found = self._time(expression.left)
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
