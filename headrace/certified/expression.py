"""An expression of Spark's, compiled: a tree of sqlglot's -> `TypedSql`.

Names are resolved by a `NameResolver`, so the same compiler serves a query, the finish of a view
and a condition. What is not supported is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Protocol

from sqlglot import exp

from headrace.certified.aggregates import ORDERED_SETS, SYNONYMS, OrderByItem, Over
from headrace.certified.casts import cast
from headrace.certified.function import scalar_arity, wrong_arity
from headrace.certified.function_table import OFFERED, FunctionTable
from headrace.certified.functions.choices import chosen
from headrace.certified.intervals import (
    DAYS_MAX,
    frame_edge,
    in_calendar,
    read_interval,
    shifted,
    unit_of,
    within,
)
from headrace.certified.nested import field_of, no_field, subscript
from headrace.certified.nodes import call_of, number, type_named
from headrace.certified.operators import (
    arithmetic,
    bitwise_and,
    comparison,
    integral_division,
    negated,
    truth,
)
from headrace.certified.typed import (
    ORDER_BY_PART,
    TypedSql,
    combine,
    not_available,
    text_literal,
)
from headrace.certified.types import BOOLEAN, STRING, VOID, has_equality, has_order, widest
from headrace.core.errors import BadQuery, LimitReached, did_you_mean
from headrace.define.dialect import sql_of

_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%",
}  # fmt: skip
_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
}  # fmt: skip


SQL_CHARACTERS_MAX = 500_000
SMALLER = "nest fewer expressions and subqueries."


class NameResolver(Protocol):
    """What the names of an expression mean."""

    def column(self, node: exp.Column) -> TypedSql: ...

    def subquery(self, query: exp.Expr) -> tuple[str, list[TypedSql]]:
        """The SQL of a query inside an expression, and its columns."""


class Expressions:
    """Compiles expressions over some names."""

    def __init__(self, names: NameResolver, functions: FunctionTable = OFFERED) -> None:
        self.names, self.functions = names, functions
        self.windows: dict[str, exp.Window] = {}  # those of the WINDOW clause, by name
        self.grouped: list[exp.Expr] = []  # the columns of ROLLUP, CUBE and GROUPING SETS

    def compile(self, node: exp.Expr) -> TypedSql:
        found = self._compile(node)
        # A form may write its argument several times, so nested calls could grow without bound.
        if len(found.sql) > SQL_CHARACTERS_MAX:
            raise LimitReached("the expanded query is too large", hint=SMALLER)
        if self.functions.strict and found.deviation:
            raise not_available(found.deviation)
        return found

    def _compile(self, node: exp.Expr) -> TypedSql:
        known = _ARGUMENTS.get(type(node))
        if known is not None and (
            more := [n for n, v in node.args.items() if v and n not in known]
        ):
            raise not_available(f"'{node.key}' with '{more[0]}'")
        for kind, method in _METHODS.items():
            if isinstance(node, kind):
                return method(self, node)
        sign = _ARITHMETIC.get(type(node))
        if sign:
            return self._arithmetic(node, sign)
        sign = _COMPARISONS.get(type(node))
        if sign:
            return comparison(sign, self.compile(node.this), self.compile(node.expression))
        if isinstance(node, exp.Func | exp.Any):
            return self._call(node)
        raise not_available(f"'{node.key}'")

    def condition(self, node: exp.Expr) -> TypedSql:
        return truth(self.compile(node))

    # Literals and names

    def _column(self, node: exp.Column) -> TypedSql:
        return self.names.column(node)

    def _paren(self, node: exp.Paren) -> TypedSql:
        return self.compile(node.this)

    def _literal(self, node: exp.Literal) -> TypedSql:
        if node.is_string:
            return TypedSql(text_literal(node.this), STRING, literal=node.this)
        return number(node.this)

    def _boolean(self, node: exp.Boolean) -> TypedSql:
        return TypedSql("true" if node.this else "false", BOOLEAN)

    def _null(self, node: exp.Null) -> TypedSql:
        return TypedSql("NULL", VOID)

    def _interval(self, node: exp.Interval) -> TypedSql:
        raise not_available(
            "an interval outside of date arithmetic", "add the interval to a date or a timestamp."
        )

    # Operators

    def _arithmetic(self, node: exp.Expr, sign: str) -> TypedSql:
        a, b = node.this, node.expression
        if sign in "+-" and (by := read_interval(b)):
            return shifted(self.compile(a), by if sign == "+" else by.negated())
        if sign == "+" and (by := read_interval(a)):
            return shifted(self.compile(b), by)
        left, right = self.compile(a), self.compile(b)
        if left.type == "DATE" and right.type in {"INT", "SMALLINT", "TINYINT"} and sign in "+-":
            sql = f"({left.sql} {sign} {within(right.sql, DAYS_MAX)})"
            return in_calendar(combine((left, right), sql, "DATE"))
        return arithmetic(sign, left, right)

    def _int_div(self, node: exp.IntDiv) -> TypedSql:
        return integral_division(self.compile(node.this), self.compile(node.expression))

    def _bitwise_and(self, node: exp.BitwiseAnd) -> TypedSql:
        return bitwise_and(self.compile(node.this), self.compile(node.expression))

    def _neg(self, node: exp.Neg) -> TypedSql:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return number("-" + node.this.this)
        return negated(self.compile(node.this))

    def _and(self, node: exp.And | exp.Or) -> TypedSql:
        # A long chain is a deep tree, so it is taken apart instead of descended into.
        sides = [self.condition(side) for side in node.flatten()]
        word = " AND " if isinstance(node, exp.And) else " OR "
        return combine(sides, f"({word.join(side.sql for side in sides)})", BOOLEAN)

    def _not(self, node: exp.Not) -> TypedSql:
        value = self.condition(node.this)
        return value.as_type(f"(NOT {value.sql})", BOOLEAN)

    def _is(self, node: exp.Is) -> TypedSql:
        value = self.compile(node.this)
        if isinstance(node.expression, exp.Null):
            return value.as_type(f"({value.sql} IS NULL)", BOOLEAN)
        if not isinstance(node.expression, exp.Boolean):
            raise not_available("'IS' with anything but NULL, TRUE and FALSE")
        wanted = "true" if node.expression.this else "false"
        return value.as_type(f"({truth(value).sql} IS NOT DISTINCT FROM {wanted})", BOOLEAN)

    def _between(self, node: exp.Between) -> TypedSql:
        value = self.compile(node.this)
        low = comparison(">=", value, self.compile(node.args["low"]))
        high = comparison("<=", value, self.compile(node.args["high"]))
        return combine((low, high), f"({low.sql} AND {high.sql})", BOOLEAN)

    def _in(self, node: exp.In) -> TypedSql:
        value, query = self.compile(node.this), node.args.get("query")
        if query is not None:
            sql, columns = self.names.subquery(query.unnest())
            same = len(columns) == 1 and columns[0].type == value.type
            if not same or not has_equality(value.type):
                raise not_available(
                    f"IN with a subquery of type {', '.join(c.type for c in columns)} "
                    f"for a value of type {value.type}",
                    "cast one of them.",
                )
            return combine((value, *columns), f"({value.sql} IN ({sql}))", BOOLEAN)
        listed = [self.compile(item) for item in node.expressions]
        type = widest([v.type for v in (value, *listed)])
        if type is None or not has_equality(type):
            raise not_available("IN with values of different types", "cast them to one type.")
        value, *listed = (cast(each, type) for each in (value, *listed))
        sql = f"({value.sql} IN ({', '.join(item.sql for item in listed)}))"
        return combine((value, *listed), sql, BOOLEAN)

    def _exists(self, node: exp.Exists) -> TypedSql:
        sql, columns = self.names.subquery(node.this.unnest())
        return combine(columns, f"EXISTS ({sql})", BOOLEAN)

    def _subquery(self, node: exp.Subquery) -> TypedSql:
        sql, columns = self.names.subquery(node.unnest())
        if len(columns) != 1:
            raise BadQuery(f"a scalar subquery must return one column, got {len(columns)}")
        return combine(columns, f"({sql})", columns[0].type)

    def _like(self, node: exp.Like | exp.ILike, escape: str = "\\") -> TypedSql:
        value, pattern = cast(self.compile(node.this), STRING), self.compile(node.expression)
        if pattern.literal is None:
            raise not_available("LIKE with a pattern that is not a literal")
        e = re.escape(escape)
        if not re.fullmatch(f"(?:{e}(?:[%_]|{e})|(?!{e}).)*", pattern.literal, re.S):
            raise BadQuery(f"the pattern '{pattern.literal}' has a lone escape character")
        word = "ILIKE" if isinstance(node, exp.ILike) else "LIKE"
        word = f"NOT {word}" if node.args.get("negate") else word
        sql = f"({value.sql} {word} {pattern.sql} ESCAPE {text_literal(escape)})"
        return value.as_type(sql, BOOLEAN)

    def _escape(self, node: exp.Escape) -> TypedSql:
        return self._like(node.this, node.expression.name)

    def _dpipe(self, node: exp.DPipe) -> TypedSql:
        sides = [cast(self.compile(side), STRING) for side in (node.this, node.expression)]
        return combine(sides, f"({sides[0].sql} || {sides[1].sql})", STRING)

    def _case(self, node: exp.Case) -> TypedSql:
        tested = self.compile(node.this) if node.this else None
        pairs = []
        for branch in node.args["ifs"]:
            if tested is None:
                when = self.condition(branch.this)
            else:
                when = comparison("=", tested, self.compile(branch.this))
            pairs.append((when, self.compile(branch.args["true"])))
        default = node.args.get("default")
        other = self.compile(default) if default is not None else TypedSql("NULL", VOID)
        type = widest([then.type for _, then in pairs] + [other.type])
        if type is None:
            raise not_available("CASE with values of different types", "cast them to one type.")
        pairs, other = [(when, cast(then, type)) for when, then in pairs], cast(other, type)
        branches = " ".join(f"WHEN {when.sql} THEN {then.sql}" for when, then in pairs)
        parts = [value for pair in pairs for value in pair] + [other]
        return combine(parts, f"CASE {branches} ELSE {other.sql} END", type)

    def _if(self, node: exp.If) -> TypedSql:
        no = node.args.get("false")
        return chosen(
            self.compile(node.this),
            self.compile(node.args["true"]),
            self.compile(no) if no is not None else TypedSql("NULL", VOID),
        )

    def _cast(self, node: exp.Cast) -> TypedSql:
        if node.args.get("safe"):
            raise not_available(
                "TRY_CAST", "use CAST: it returns NULL for a value that does not fit."
            )
        return cast(self.compile(node.this), type_named(node.to))

    def _dot(self, node: exp.Dot) -> TypedSql:
        value, name = self.compile(node.this), node.expression.name
        found = field_of(value, name)
        if found is None:
            raise no_field(value, name)
        return found

    def _bracket(self, node: exp.Bracket) -> TypedSql:
        if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Slice):
            raise not_available("a subscript with more than one index")
        return subscript(self.compile(node.this), self.compile(node.expressions[0]))

    def _explode(self, node: exp.Explode) -> TypedSql:
        hint = "write LATERAL VIEW explode(…) t AS x."
        raise not_available("'explode' in an expression", hint)

    # Functions

    def _call(self, node: exp.Func | exp.Any) -> TypedSql:
        name, arguments = call_of(node)
        if name in {"grouping", "grouping_id"}:
            return self._grouping(name, arguments)
        if SYNONYMS.get(name, name) in ORDERED_SETS:
            raise not_available(f"'{name}' without WITHIN GROUP (ORDER BY …)")
        scalars, aggregates = self.functions.scalars, self.functions.aggregates
        if SYNONYMS.get(name, name) in aggregates:
            return self._aggregate(name, arguments, lambda call: call, windowed=False)
        if name not in scalars:
            listed = "docs/functions.md lists the available functions."
            hint = did_you_mean(name, [*scalars, *aggregates], listed, cutoff=0.75)
            raise not_available(f"'{name}'", hint)
        return self._scalar(name, [self.compile(argument) for argument in arguments])

    def _scalar(self, name: str, arguments: list[TypedSql]) -> TypedSql:
        forms = [form for form in self.functions.scalars[name] if form.accepts(len(arguments))]
        if not forms:
            raise scalar_arity(name, self.functions.scalars[name], len(arguments))
        return forms[0].call(arguments)

    def _filter(self, node: exp.Filter) -> TypedSql:
        where = self.condition(node.expression.this)
        return self._over(node.this, lambda call: f"{call} FILTER (WHERE {where.sql})", False)

    def _window(self, node: exp.Window) -> TypedSql:
        inner, where, nulls = node.this, "", ""
        if isinstance(inner, exp.Filter):
            where = f" FILTER (WHERE {self.condition(inner.expression.this).sql})"
            inner = inner.this
        if isinstance(inner, exp.IgnoreNulls | exp.RespectNulls):
            nulls = " IGNORE NULLS" if isinstance(inner, exp.IgnoreNulls) else ""
            inner = inner.this
        spec = self._window_spec(node)

        def over(call: str) -> str:
            said = f"{call[:-1]}{nulls})" if nulls else call
            return f"{said}{where} OVER ({spec})"

        return self._over(inner, over, True)

    def _extract(self, node: exp.Extract) -> TypedSql:
        field = TypedSql("", STRING, literal=node.this.name)
        return self._scalar("date_part", [field, self.compile(node.expression)])

    def _grouping(self, name: str, arguments: list[exp.Expr]) -> TypedSql:
        """Which of the grouped columns a row of ROLLUP, CUBE or GROUPING SETS leaves out."""
        if not self.grouped:
            raise BadQuery(f"{name} requires GROUP BY with ROLLUP, CUBE or GROUPING SETS")
        given = [self.compile(argument) for argument in arguments or self.grouped]
        written = [value.sql for value in given]
        if name == "grouping" and len(arguments) == 1:
            return TypedSql(f"CAST(grouping({written[0]}) AS TINYINT)", "TINYINT")
        if name == "grouping" or written != [self.compile(node).sql for node in self.grouped]:
            wanted = "one column" if name == "grouping" else "all grouping columns in order"
            found = ", ".join(map(sql_of, arguments)) or "none"
            raise BadQuery(f"{name} expects {wanted}, got {found}")
        return TypedSql(f"CAST(grouping({', '.join(written)}) AS BIGINT)", "BIGINT")

    def _within_group(self, node: exp.WithinGroup, over: Over = lambda call: call) -> TypedSql:
        name, arguments = call_of(node.this)
        row = ORDERED_SETS.get(SYNONYMS.get(name, name))
        if row is None:
            raise not_available(f"'{name}' with WITHIN GROUP")
        distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
        arguments = arguments[0].expressions if distinct else arguments
        if len(arguments) not in row.counts:
            raise wrong_arity(name, row.counts, len(arguments))
        order = [
            OrderByItem(self.compile(item.this), bool(item.args.get("desc")), self.ordered(item))
            for item in node.expression.expressions
        ]
        return row.make([self.compile(argument) for argument in arguments], order, distinct, over)

    def _over(self, node: exp.Expr, over: Over, windowed: bool) -> TypedSql:
        if isinstance(node, exp.WithinGroup):
            if windowed:
                raise not_available("WITHIN GROUP with OVER")
            return self._within_group(node, over)
        name, arguments = call_of(node)
        if SYNONYMS.get(name, name) not in self.functions.aggregates:
            raise not_available(f"'{name}' as an aggregate")
        return self._aggregate(name, arguments, over, windowed=windowed)

    def _aggregate(
        self, name: str, arguments: list[exp.Expr], over: Over, *, windowed: bool
    ) -> TypedSql:
        row = self.functions.aggregates[SYNONYMS.get(name, name)]
        if row.window_only and not windowed:
            raise not_available(f"'{name}' without OVER")
        if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
            plain = over
            arguments = arguments[0].expressions

            def over(call: str) -> str:
                function, _, rest = call.partition("(")
                return plain(f"{function}(DISTINCT {rest}")

        if len(arguments) == 1 and isinstance(arguments[0], exp.Star):
            arguments = []
        if len(arguments) not in row.counts:
            raise wrong_arity(name, row.counts, len(arguments))
        return row.make([self.compile(argument) for argument in arguments], over)

    def _named_window(self, node: exp.Window) -> exp.Window:
        """The window that OVER w or OVER (w) means."""
        name = node.args.get("alias")
        if not name:
            return node
        if any(node.args.get(word) for word in ("partition_by", "order", "spec")):
            raise not_available("a window based on another window")
        found = self.windows.get(name.name.lower())
        if found is None:
            raise BadQuery(f"there is no window '{name.name}'")
        return found

    def _window_spec(self, node: exp.Window) -> str:
        node, parts = self._named_window(node), []
        if keys := node.args.get("partition_by"):
            values = [self.compile(key) for key in keys]
            if unequal := next((v.type for v in values if not has_equality(v.type)), None):
                raise not_available(f"PARTITION BY {unequal}")
            parts.append("PARTITION BY " + ", ".join(value.sql for value in values))
        if order := node.args.get("order"):
            parts.append("ORDER BY " + ", ".join(map(self.ordered, order.expressions)))
        if spec := node.args.get("spec"):
            units = {unit_of(spec.args.get(edge)) for edge in ("start", "end")} - {None}
            if len(units) > 1:
                raise BadQuery("both bounds of a window frame must have the same interval unit")
            start = self._edge(spec, "start", order)
            end = self._edge(spec, "end", order) if spec.args.get("end") else "CURRENT ROW"
            parts.append(f"{spec.args['kind'].upper()} BETWEEN {start} AND {end}")
        return " ".join(parts)

    def _edge(self, spec: exp.WindowSpec, edge: str, order: exp.Order | None) -> str:
        value, side = spec.args[edge], spec.args.get(f"{edge}_side") or ""
        if isinstance(value, exp.Interval):
            keys = order.expressions if order and spec.args["kind"] == "RANGE" else []
            if len(keys) != 1:
                raise BadQuery("an interval in a window frame requires RANGE and one ORDER BY item")
            return f"{frame_edge(value, self.compile(keys[0].this).type)} {side}"
        said = value if isinstance(value, str) else self.compile(value).sql
        return f"{said} {side}".strip().upper()

    def ordered(self, node: exp.Expr) -> str:
        """An item of ORDER BY; Spark puts NULL first, and last where the order is descending."""
        direction = "DESC" if node.args.get("desc") else "ASC"
        nulls = "FIRST" if node.args.get("nulls_first") else "LAST"
        value = self.compile(node.this)
        if not has_order(value.type):
            raise not_available(f"ordering by {value.type}", ORDER_BY_PART)
        return f"{value.sql} {direction} NULLS {nulls}"


# The arguments of nodes that are read here. The parser may put a NOT or another word of SQL into an
# argument of a node; one that nobody reads would change the meaning.
_BOTH = {"this", "expression"}
_ARGUMENTS: dict[type[exp.Expr], set[str]] = {
    exp.Between: {"this", "low", "high"}, exp.In: {"this", "expressions", "query"},
    exp.Is: _BOTH, exp.Like: {*_BOTH, "negate"}, exp.ILike: {*_BOTH, "negate"},
    exp.Escape: _BOTH, exp.Not: {"this"}, exp.Neg: {"this"}, exp.Case: {"this", "ifs", "default"},
    exp.If: {"this", "true", "false"}, exp.BitwiseAnd: _BOTH, exp.IntDiv: _BOTH,
    exp.Exists: {"this"}, exp.And: _BOTH, exp.Or: _BOTH,
}  # fmt: skip
# The node is of the kind that the method is found by.
Method = Callable[[Expressions, Any], TypedSql]
_METHODS: dict[type[exp.Expr], Method] = {
    exp.Column: Expressions._column, exp.Paren: Expressions._paren,
    exp.Literal: Expressions._literal, exp.Boolean: Expressions._boolean,
    exp.Null: Expressions._null, exp.Interval: Expressions._interval,
    exp.BitwiseAnd: Expressions._bitwise_and, exp.IntDiv: Expressions._int_div,
    exp.Neg: Expressions._neg, exp.And: Expressions._and,
    exp.Or: Expressions._and, exp.Not: Expressions._not, exp.Is: Expressions._is,
    exp.Between: Expressions._between, exp.In: Expressions._in, exp.Exists: Expressions._exists,
    exp.Subquery: Expressions._subquery, exp.Like: Expressions._like,
    exp.ILike: Expressions._like, exp.Escape: Expressions._escape, exp.DPipe: Expressions._dpipe,
    exp.Case: Expressions._case, exp.If: Expressions._if, exp.Cast: Expressions._cast,
    exp.Dot: Expressions._dot, exp.Filter: Expressions._filter, exp.Window: Expressions._window,
    exp.WithinGroup: Expressions._within_group, exp.Extract: Expressions._extract,
    exp.Bracket: Expressions._bracket, exp.Explode: Expressions._explode,
}  # fmt: skip
