"""Calls of aggregates in a definition, independent of the class that sqlglot parses them into.

`read_call` gives the aggregate, its arguments, its condition and the values of its parameters, or
None for an expression that is not one of our aggregates.
tests/compile/test_split.py checks the forms and the error messages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp

from headrace.core.aggregate import (
    AGGREGATES,
    SYNONYMS,
    Aggregate,
    AggregateParameter,
    ParameterValues,
)
from headrace.core.errors import Unsupported
from headrace.core.origin import Origin
from headrace.define.dialect import parse_query, sql_of

AGGREGATE_NAMES = ", ".join(
    [*(name for name in AGGREGATES if name != "count_distinct"), "count(DISTINCT …)"]
)
_NODES: dict[type[exp.Expr], str] = {
    exp.Count: "count", exp.CountIf: "count", exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min",
    exp.Max: "max", exp.Variance: "var_samp", exp.VariancePop: "var_pop", exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp", exp.StddevPop: "stddev_pop", exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or", exp.Any: "bool_or", exp.ApproxDistinct: "approx_count_distinct",
    exp.First: "first", exp.FirstValue: "first", exp.Last: "last", exp.LastValue: "last",
    exp.ApproxQuantile: "percentile_approx", exp.Median: "median", exp.ApproxTopK: "approx_top_k",
    exp.CovarSamp: "covar_samp", exp.CovarPop: "covar_pop", exp.Corr: "corr",
    exp.Skewness: "skewness", exp.Kurtosis: "kurtosis",
}  # fmt: skip
# Aggregates of Spark that sqlglot does not know, besides those of sketches.
_SPARKS = {
    "bit_and", "bit_or", "bit_xor", "collect_union", "count_min_sketch", "histogram_numeric",
    "listagg", "measure", "percentile", "try_avg", "try_sum",
}  # fmt: skip
_OF_SKETCHES = re.compile(r"\w+_agg(_bigint|_integer|_double|_float)?")
_AS_THEY_ARE = {"min", "max", "bool_and", "bool_or"}  # DISTINCT changes nothing


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """One aggregate of the view: arguments and condition are expressions over an event."""

    name: str
    arguments: tuple[str, ...]
    condition: str | None
    parameters: ParameterValues = ()  # their values


def aggregate_name(node: exp.Expr) -> str | None:
    """The name of the aggregate that the node itself calls; None if it is not one of ours."""
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    name = _NODES.get(type(node)) or SYNONYMS.get(name, name)
    return name if name in AGGREGATES and name != "count_distinct" else None


def is_aggregate(node: exp.Expr) -> bool:
    """Whether the node itself calls an aggregate, one of ours or another of Spark's."""
    if aggregate_name(node) or not isinstance(node, exp.Anonymous):
        return aggregate_name(node) is not None or isinstance(node, exp.AggFunc)
    name, known = node.name.lower(), exp.FUNCTION_BY_NAME.get(node.name.upper())
    if name in _SPARKS or _OF_SKETCHES.fullmatch(name):
        return True
    return known is not None and issubclass(known, exp.AggFunc)


def has_aggregate(expression: exp.Expr) -> bool:
    """Whether an aggregate is called anywhere in the expression."""
    return any(map(is_aggregate, expression.walk()))


def read_call(expression: exp.Expr, origin: Origin) -> AggregateCall | None:
    """The aggregate call of an expression."""
    conditions, ignores_nulls = [], False
    while isinstance(expression, exp.Filter | exp.IgnoreNulls):
        if isinstance(expression, exp.Filter):
            conditions.append(sql_of(expression.expression.this))
        else:
            ignores_nulls = True
        expression = expression.this
    name = aggregate_name(expression)
    if name is None:
        return None
    arguments = arguments_of(expression)
    if isinstance(expression, exp.CountIf):
        conditions.append(sql_of(arguments[0]))
        arguments = [exp.Literal.number(1)]
    if ignores_nulls:
        conditions.append(f"{sql_of(arguments[0])} IS NOT NULL")
    if arguments and isinstance(arguments[0], exp.Distinct):
        name, arguments = _distinct(name, arguments[0], origin)
    return _call(AGGREGATES[name], arguments, _all(conditions), origin)


def _call(
    row: Aggregate, given: list[exp.Expr], condition: str | None, origin: Origin
) -> AggregateCall:
    arguments, literals = given[: row.arguments], given[row.arguments :]
    required = sum(parameter.default is None for parameter in row.parameters)
    if len(arguments) < row.arguments or not required <= len(literals) <= len(row.parameters):
        raise _wrong_count(row, len(given), origin)
    if any(has_aggregate(argument) for argument in arguments):
        raise Unsupported(
            "aggregates cannot be nested",
            hint="aggregate again in a view over this view.",
            origin=origin,
        )
    said = [parameter.default for parameter in row.parameters]
    for number, literal in enumerate(literals):
        said[number] = _said(row, row.parameters[number], literal, origin)
    if wrong := row.refuses(tuple(said)):
        raise Unsupported(wrong, origin=origin)
    return AggregateCall(row.name, tuple(map(sql_of, arguments)), condition, tuple(said))


def _said(
    row: Aggregate, parameter: AggregateParameter, literal: exp.Expr, origin: Origin
) -> int | float | str:
    value = _literal(literal)
    if value is None or not parameter.allows(value):
        raise Unsupported(
            f"the {parameter.name} of {row.name} cannot be {sql_of(literal)}",
            hint=f"write {parameter.takes}.",
            origin=origin,
        )
    return float(value) if parameter.kind is float else value


def _distinct(name: str, node: exp.Distinct, origin: Origin) -> tuple[str, list[exp.Expr]]:
    if name in _AS_THEY_ARE:
        return name, node.expressions
    if name != "count":
        raise Unsupported(
            f"{name}(DISTINCT …) is not supported", hint="use count(DISTINCT …).", origin=origin
        )
    return "count_distinct", node.expressions


def arguments_of(call: exp.Expr) -> list[exp.Expr]:
    """The arguments of a call, in the order in which they were written."""
    if isinstance(call.this, exp.Star):
        return [exp.Literal.number(1)]
    found: list[exp.Expr] = []
    for name in call.arg_types:
        value = call.args.get(name)
        found += value if isinstance(value, list) else [value] if value is not None else []
    return [part.unnest() for part in found if isinstance(part, exp.Expr)]


def _literal(expression: exp.Expr) -> int | float | str | None:
    """The value of a literal; None for anything else."""
    negative = isinstance(expression, exp.Neg)
    literal = expression.this if negative else expression
    if not isinstance(literal, exp.Literal) or (negative and literal.is_string):
        return None
    if literal.is_string:
        return str(literal.name)
    value = int(literal.name) if literal.name.isdigit() else float(literal.name)
    return -value if negative else value


def to_spark_aggregates(query: str, origin: Origin) -> str:
    """The query for Spark's analyser: each aggregate that only we have is replaced by one of
    Spark's with a similar type. A query without them is unchanged, so that errors keep their line.
    """
    tree = parse_query(query, origin)
    ours = [node for node in tree.find_all(exp.Anonymous) if node.name.lower() in _STAND_INS]
    for node in ours:
        stand_in = _STAND_INS[node.name.lower()]
        node.replace(exp.Anonymous(this=stand_in, expressions=node.expressions[:1]))
    return sql_of(tree) if ours else query


_STAND_INS = {
    "collect_list": "collect_list",
    "collect_set": "collect_set",
    "histogram": "collect_list",
    "count_min": "count",
    "bitmap_count_distinct": "count",
}


def _all(conditions: list[str]) -> str | None:
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return " AND ".join(f"({text})" for text in conditions)


def _wrong_count(row: Aggregate, given: int, origin: Origin) -> Unsupported:
    most = row.arguments + len(row.parameters)
    least = most - sum(parameter.default is not None for parameter in row.parameters)
    number = f"{least}" if least == most else f"{least} to {most}"
    shown = [
        p.name if p.default is None else f"{p.name} (default {p.default})" for p in row.parameters
    ]
    return Unsupported(
        f"{row.name} expects {number} argument{'' if most == 1 else 's'}, got {given}",
        detail=f"trailing parameters: {', '.join(shown)}." if shown else None,
        origin=origin,
    )
