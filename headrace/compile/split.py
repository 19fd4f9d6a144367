"""Splits a view's SELECT into three parts: map | group keys and aggregates | finish.

The map reads one event at a time and computes the keys and the aggregates' arguments. Everything
after the aggregates (expressions over them, HAVING, ORDER BY, LIMIT) is the finish, run when read.
tests/compile/test_split.py checks the parts; `headrace explain` prints them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from headrace.compile.calls import (
    AGGREGATE_NAMES,
    AggregateCall,
    has_aggregate,
    is_aggregate,
    read_call,
)
from headrace.compile.window_functions import (
    OrderedWindow,
    read_window,
    window_edge,
    window_function,
)
from headrace.compile.windows import WindowPlan
from headrace.core.errors import Unsupported
from headrace.core.origin import Origin
from headrace.define.dialect import sql_of


@dataclass(frozen=True, slots=True)
class GroupKey:
    """One expression that the view is grouped by."""

    name: str
    sql: str  # of a window: its time
    window: WindowPlan | None = None
    ordered: OrderedWindow | None = None  # `sql` is then the call itself

    @property
    def timed(self) -> bool:
        """Whether it is a window of event time."""
        return self.window is not None and self.ordered is None


@dataclass(slots=True)
class ViewParts:
    """The parts of a mergeable view. In `items`, `having` and `order` the columns `key_<n>` and
    `call_<n>` are placeholders for the n-th group and the n-th call, `start_<n>` and `end_<n>` for
    the start and end of the n-th group, if it is a window.
    """

    groups: list[GroupKey] = field(default_factory=list)
    calls: list[AggregateCall] = field(default_factory=list)
    items: list[tuple[str, exp.Expr]] = field(default_factory=list)
    having: exp.Expr | None = None
    order: list[exp.Expr] = field(default_factory=list)
    limit: int | None = None


# Whether Spark considers two SQL texts over the rows of a SELECT to be the same expression.
Equal = Callable[[str, str], bool]


def split(select: exp.Select, columns: set[str], origin: Origin, equal: Equal) -> ViewParts:
    """Split a SELECT with aggregates; `columns` are the names that its sources have."""
    return _Splitter(select, columns, origin, equal).run()


class _Splitter:
    def __init__(self, select: exp.Select, columns: set[str], origin: Origin, equal: Equal) -> None:
        self.select, self.columns, self.origin = select, columns, origin
        self.equal = equal
        self.parts = ViewParts()
        self.grouped: list[exp.Expr] = []  # the expressions of the groups
        self.aliases: dict[str, exp.Expr] = {
            item.alias.lower(): item.this
            for item in select.expressions
            if isinstance(item, exp.Alias)
        }

    def run(self) -> ViewParts:
        self.refuse_other_clauses()
        for expression in self.group_expressions():
            self.parts.groups.append(self.group(expression))
            self.grouped.append(expression)
        for item in self.select.expressions:
            if item.is_star:
                raise self.unsupported(
                    "SELECT * is not supported in a view over a stream",
                    "list the columns of the view.",
                )
            self.parts.items.append((self.name_of(item), self.finish(item.unalias())))
        if having := self.select.args.get("having"):
            self.parts.having = self.finish(having.this)
        if order := self.select.args.get("order"):
            self.parts.order = [self.ordered(item) for item in order.expressions]
        if limit := self.select.args.get("limit"):
            self.parts.limit = self.limit(limit.expression)
        if not self.parts.calls and not self.parts.groups:
            raise self.unsupported(
                "the view neither groups nor aggregates",
                "a view needs GROUP BY or an aggregate; CREATE STREAM … AS is for stateless steps.",
            )
        return self.parts

    def limit(self, expression: exp.Expr) -> int:
        if isinstance(expression, exp.Literal) and expression.name.isdigit():
            return int(expression.name)
        raise self.unsupported(f"LIMIT must be an integer literal, got {sql_of(expression)}")

    def refuse_other_clauses(self) -> None:
        for part in ("qualify", "windows", "offset", "sort", "cluster", "distribute", "pivots"):
            if self.select.args.get(part):
                raise self.unsupported(f"{part.upper()} is not supported in a view")
        if self.select.find(exp.Window):
            raise self.unsupported(
                "OVER (…) is not supported in a view over a stream",
                "aggregate with GROUP BY; use OVER in an ad-hoc query.",
            )

    # Group keys

    def group_expressions(self) -> list[exp.Expr]:
        group = self.select.args.get("group")
        if group is None:
            plain = [item.unalias() for item in self.select.expressions]
            return plain if self.select.args.get("distinct") else []
        for part in ("grouping_sets", "cube", "rollup"):
            if group.args.get(part):
                raise self.unsupported(
                    f"{part.replace('_', ' ').upper()} is not supported in a view"
                )
        if group.args.get("all") or [sql_of(e).upper() for e in group.expressions] == ["ALL"]:
            items = [item.unalias() for item in self.select.expressions]
            return [item for item in items if not has_aggregate(item)]
        return [self.dereferenced(expression) for expression in group.expressions]

    def dereferenced(self, expression: exp.Expr) -> exp.Expr:
        """A group expression may be an ordinal or an alias of the select list."""
        if isinstance(expression, exp.Literal) and not expression.is_string:
            return self.item(expression)
        plain = isinstance(expression, exp.Column) and not expression.table
        name = expression.name.lower()
        if plain and name not in self.columns and name in self.aliases:
            return self.aliases[name]
        return expression

    def item(self, ordinal: exp.Literal) -> exp.Expr:
        """The select item of GROUP BY 2 or ORDER BY 2."""
        items: list[exp.Expr] = [item.unalias() for item in self.select.expressions]
        return items[int(ordinal.name) - 1]

    def group(self, expression: exp.Expr) -> GroupKey:
        number = len(self.parts.groups)
        named = [
            i.alias_or_name for i in self.select.expressions if self.same(i.unalias(), expression)
        ]
        name = (named[0] if named else "") or f"key_{number}"
        word = window_function(expression)
        if word is None:
            return GroupKey(name, sql_of(expression))
        name, window = name if named else word, read_window(expression, self.origin)
        if isinstance(window, OrderedWindow):
            return GroupKey(name, sql_of(expression), window.window, window)
        return GroupKey(name, sql_of(expression.expressions[0]), window)

    # Finish

    def finish(self, expression: exp.Expr) -> exp.Expr:
        """The expression with each aggregate and each group key replaced by its placeholder."""
        for number, group in enumerate(self.parts.groups):
            if self.is_group(expression, number):
                return exp.column(f"key_{number}")
            if group.timed and (edge := window_edge(expression)):
                return exp.column(f"{edge}_{number}")
        if call := read_call(expression, self.origin):
            if call not in self.parts.calls:
                self.parts.calls.append(call)
            return exp.column(f"call_{self.parts.calls.index(call)}")
        if is_aggregate(expression) or window_function(expression):
            raise self.unsupported(
                f"{sql_of(expression)} is not supported in a view over a stream",
                f"available aggregates: {AGGREGATE_NAMES}.",
            )
        if isinstance(expression, exp.Column):
            return self.alias(expression)
        copy = expression.copy()
        for key, value in expression.args.items():
            if isinstance(value, exp.Expr):
                copy.set(key, self.finish(value))
            elif isinstance(value, list):
                copy.set(key, [self.finish(v) if isinstance(v, exp.Expr) else v for v in value])
        return copy

    def alias(self, column: exp.Column) -> exp.Expr:
        """HAVING and ORDER BY may refer to an output by its name."""
        if not column.table and column.name.lower() in self.aliases:
            return self.finish(self.aliases[column.name.lower()])
        raise self.unsupported(
            f"'{sql_of(column)}' is neither grouped nor aggregated", "add it to GROUP BY."
        )

    def ordered(self, item: exp.Expr) -> exp.Expr:
        expression = item.this
        if isinstance(expression, exp.Literal) and not expression.is_string:
            expression = self.item(expression)
        elif isinstance(expression, exp.Column) and not expression.table:
            # In ORDER BY, the name of an output has precedence over a key.
            expression = self.aliases.get(expression.name.lower(), expression)
        copy = item.copy()
        copy.set("this", self.finish(expression))
        return copy

    def is_group(self, expression: exp.Expr, number: int) -> bool:
        group, grouped = self.parts.groups[number], self.grouped[number]
        if group.timed:
            called = bool(window_function(expression))
            return called and self.same(expression.expressions[0], grouped.expressions[0])
        return self.same(expression, grouped)

    def same(self, one: exp.Expr, other: exp.Expr) -> bool:
        """Whether two expressions are the same. A column may be qualified or not; different texts
        over the same columns are compared by Spark.
        """
        if isinstance(one, exp.Column) and isinstance(other, exp.Column):
            qualified = one.table and other.table
            return one.name.lower() == other.name.lower() and (
                not qualified or one.table.lower() == other.table.lower()
            )
        texts = sql_of(one), sql_of(other)
        columns = _columns(one)
        return texts[0] == texts[1] or (
            bool(columns) and columns == _columns(other) and self.equal(*texts)
        )

    @staticmethod
    def name_of(item: exp.Expr) -> str:
        plain = isinstance(item, exp.Column) or window_function(item)
        return str(item.alias or (item.name if plain else sql_of(item)))

    def unsupported(self, message: str, hint: str | None = None) -> Unsupported:
        return Unsupported(message, hint=hint, origin=self.origin)


def _columns(expression: exp.Expr) -> set[str]:
    """The names of the columns in an expression over one event; empty for an aggregate."""
    if has_aggregate(expression):
        return set()
    return {column.name.lower() for column in expression.find_all(exp.Column)}
