"""Compiles SQL over the rows of a match to expressions that navigate to a row and a column.

An expression over one row becomes a column that Spark computes for every event. Expressions over
several rows are evaluated by the matcher in a condition, and by Spark after the match in a measure.
tests/compile/test_match_recognize.py checks both, tests/plans/error_spark_match_*.sql what is
refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from msgspec.structs import replace
from sqlglot import exp

from headrace.compile.calls import is_aggregate
from headrace.core.errors import Unsupported
from headrace.core.origin import Origin
from headrace.core.pattern import (
    CLASSIFIED,
    Classifier,
    Expression,
    MatchAggregate,
    MatchId,
    MatchNumber,
    RowNavigation,
    Value,
)
from headrace.core.schema import Type
from headrace.define.dialect import sql_of
from headrace.define.match_recognize import AGGREGATES as MATCH_AGGREGATES

TEXT, BIGINT, DOUBLE = Type("STRING"), Type("BIGINT"), Type("DOUBLE")
TypeOf = Callable[[str, Origin], Type]


@dataclass(slots=True)
class MatcherInputs:
    """The columns of every event that the matcher reads: SQL -> column and type."""

    alias: str  # of the stream
    type_of: TypeOf
    columns: dict[str, tuple[str, Type]] = field(default_factory=dict)

    def column(self, node: exp.Expr, origin: Origin) -> tuple[str, Type]:
        """The column of an expression over one row."""
        sql = self.sql(node)
        if sql not in self.columns:
            self.columns[sql] = (f"c{len(self.columns)}", self.type_of(sql, origin))
        return self.columns[sql]

    def sql(self, node: exp.Expr) -> str:
        """The SQL of an expression over the stream's row, without pattern variables."""
        copy = node.copy()
        for column in list(copy.find_all(exp.Column)):
            named = exp.column(column.name, table=self.alias)
            copy = named if column is copy else copy
            column.replace(named)
        return sql_of(copy)


@dataclass(frozen=True, slots=True)
class TypedExpression:
    """An expression of the matcher, and its type."""

    expression: Expression
    type: Type


class NavigationReader:
    """Reads columns, navigations and aggregates in one condition or measure."""

    def __init__(self, inputs: MatcherInputs, names: Iterable[str], origin: Origin) -> None:
        self.inputs, self.names, self.origin = inputs, set(names), origin

    def leaf(self, node: exp.Expr) -> TypedExpression | None:
        """The expression of a column, navigation or aggregate; None for an operation."""
        if isinstance(node, exp.Column):
            return self.value(node, RowNavigation(self.variable([node])))
        self.refuse_aggregate(node)
        if not isinstance(node, exp.Anonymous):
            return None
        final, kind, name = _called(node)
        if kind == "agg":
            return self.aggregate(node, name, final)
        if kind == "nav":
            return self.navigated(node, name, final)
        return None

    def refuse_aggregate(self, node: exp.Expr) -> None:
        """Refuse an aggregate that patterns lack; Spark would aggregate over all matches."""
        name = node.name.lower() if isinstance(node, exp.Anonymous) else node.key
        if is_aggregate(node):
            raise self.unsupported(
                f"the aggregate {name} is not supported in a pattern",
                f"use one of {', '.join(MATCH_AGGREGATES)}.",
            )

    def navigated(self, node: exp.Anonymous, name: str, final: bool) -> TypedExpression:
        if name == "match_number":
            return TypedExpression(MatchNumber(), BIGINT)
        if name == "match_id":
            return TypedExpression(MatchId(), TEXT)
        if name == "classifier":
            return TypedExpression(Classifier(RowNavigation(self.classified(node))), TEXT)
        if name in {"first", "last"}:
            return self.logical(node, name == "first", final)
        shift = self.number(node, 1) * (-1 if name == "prev" else 1)
        inner = self.argument(node)
        _, kind, below = _called(inner) if isinstance(inner, exp.Anonymous) else (False, "", "")
        if kind == "nav" and below in {"prev", "next"}:
            raise self.unsupported(
                f"{below}() cannot be nested in {name}()", "use one call with another offset."
            )
        leaf = self.leaf(inner) if kind == "nav" else None
        leaf = leaf or self.value(inner, RowNavigation(self.variable(_columns(inner))))
        return _shifted(leaf, shift)

    def logical(self, node: exp.Anonymous, first: bool, final: bool) -> TypedExpression:
        inner = self.argument(node)
        offset = self.number(node, 0)
        if isinstance(inner, exp.Anonymous) and _called(inner)[1:] == ("nav", "classifier"):
            place = RowNavigation(self.classified(inner), first, offset, final=final)
            return TypedExpression(Classifier(place), TEXT)
        place = RowNavigation(self.variable(_columns(inner)), first, offset, final=final)
        return self.value(inner, place)

    def value(self, node: exp.Expr, place: RowNavigation) -> TypedExpression:
        if special := next((n for n in node.find_all(exp.Anonymous) if _called(n)[1]), None):
            name = _called(special)[2]
            raise self.unsupported(
                f"{name}() cannot be nested in a navigation function or an aggregate"
            )
        column, type = self.inputs.column(node, self.origin)
        return TypedExpression(Value(column, place), type)

    def aggregate(self, node: exp.Anonymous, name: str, final: bool) -> TypedExpression:
        inner = self.argument(node)
        distinct = isinstance(inner, exp.Distinct)
        inner = inner.expressions[0] if isinstance(inner, exp.Distinct) else inner
        if isinstance(inner, exp.Star) or (isinstance(inner, exp.Column) and inner.name == "*"):
            variable = self.variable([inner]) if isinstance(inner, exp.Column) else None
            return TypedExpression(MatchAggregate(name, None, variable, final=final), BIGINT)
        column, variable, taken = self.aggregated(inner)
        type = _made(name, taken)
        if type is None:
            raise self.unsupported(f"{name} does not accept {taken.spark}", "use a number.")
        return TypedExpression(MatchAggregate(name, column, variable, distinct, final), type)

    def aggregated(self, inner: exp.Expr) -> tuple[str, str | None, Type]:
        """The column, the variable and the type that an aggregate is over."""
        if isinstance(inner, exp.Anonymous) and _called(inner)[1:] == ("nav", "classifier"):
            return CLASSIFIED, self.classified(inner), TEXT
        leaf = self.value(inner, RowNavigation(self.variable(_columns(inner))))
        assert isinstance(leaf.expression, Value)
        return leaf.expression.column, leaf.expression.place.name, leaf.type

    def variable(self, columns: list[exp.Column]) -> str | None:
        """The one variable that all columns name; None for all rows of the match."""
        found = {column.table.upper() for column in columns}
        if len(found) > 1:
            said = ", ".join(sorted(name or "no variable" for name in found))
            raise self.unsupported(
                f"a navigation or an aggregate refers to more than one pattern variable: {said}"
            )
        name = found.pop() if found else ""
        if name and name not in self.names:
            known = ", ".join(sorted(self.names))
            raise self.unsupported(
                f"'{name.lower()}' is not a pattern variable", f"pattern variables: {known}."
            )
        return name or None

    def classified(self, node: exp.Anonymous) -> str | None:
        if not node.expressions:
            return None
        return self.variable([exp.column("x", table=node.expressions[0].name)])

    def argument(self, node: exp.Anonymous) -> exp.Expr:
        if not node.expressions:
            raise self.unsupported(f"{_called(node)[2]}() requires an argument")
        argument: exp.Expr = node.expressions[0]
        return argument

    def number(self, node: exp.Anonymous, default: int) -> int:
        if len(node.expressions) < 2:
            return default
        literal = node.expressions[1]
        text = literal.name if isinstance(literal, exp.Literal) else ""
        if len(node.expressions) > 2 or literal.is_string or not text.isdecimal():
            raise self.unsupported(
                f"the offset of {_called(node)[2]}() must be a non-negative integer literal"
            )
        return int(text)

    def unsupported(self, message: str, hint: str | None = None) -> Unsupported:
        return Unsupported(message, hint=hint, origin=self.origin)


def _called(node: exp.Anonymous) -> tuple[bool, str, str]:
    """(final, "nav" | "agg" | "", name) of a call, as define/match_recognize.py names them."""
    name = node.name.lower()
    final = name.startswith("final_")
    kind, _, rest = name.removeprefix("final_").partition("_")
    return (final, kind, rest) if kind in {"nav", "agg"} else (False, "", name)


def _columns(node: exp.Expr) -> list[exp.Column]:
    return list(node.find_all(exp.Column))


def _shifted(leaf: TypedExpression, shift: int) -> TypedExpression:
    assert isinstance(leaf.expression, Value | Classifier)
    place = replace(leaf.expression.place, shift=shift)
    return TypedExpression(replace(leaf.expression, place=place), leaf.type)


def _made(function: str, type: Type) -> Type | None:
    """The type of an aggregate."""
    if function == "count":
        return BIGINT
    if function == "collect_list":
        return Type.array_of(type)
    if function in {"min", "max"}:
        return type
    if not type.numeric:
        return None
    return DOUBLE if function == "avg" or type == DOUBLE else BIGINT
