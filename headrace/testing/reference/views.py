"""The answer of one SELECT, step by step in the order of SQL:

    FROM → WHERE → window → GROUP BY → aggregates → HAVING → SELECT → ORDER BY → LIMIT.

A step that makes new columns (the window, the group's keys, each aggregate) puts their values into
the row under the alias "" and writes the new column in place of the expression, so that one
`evaluate` serves every clause. Rows in which nothing was grouped keep their event's position in
the log.
tests/testing/test_views.py checks each step.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cmp_to_key

from sqlglot import exp

from headrace.core.errors import BadDefinition, Unsupported
from headrace.testing.reference.aggregates import aggregate, aggregating
from headrace.testing.reference.casts import cast
from headrace.testing.reference.clauses import Clauses, Order, clauses_of
from headrace.testing.reference.expressions import evaluate, true
from headrace.testing.reference.moments import interval, windows_of
from headrace.testing.reference.names import HIDDEN, key_column, resolve
from headrace.testing.reference.sources import Named, Relation, Table, relation_of
from headrace.testing.reference.values import (
    Key,
    Row,
    Timestamp,
    Value,
    Window,
    grouping,
    sort_order,
)

_WINDOW: Key = ("", "window")


def answered(query: exp.Select, named: Named) -> Table:
    """The answer of a query, given what the names in its FROM stand for."""
    relation = relation_of(query, _with_ctes(query, named), answered)
    relation = _where(query, relation)
    clauses = clauses_of(query, relation.scope)
    clauses, rows = _windowed(clauses, relation.rows)
    if clauses.grouped:
        clauses, rows = _grouped(clauses, rows)
    rows = [row for row in rows if clauses.having is None or true(clauses.having, row)]
    rows = _limited(_ordered(rows, clauses.order), query)
    table = Table(
        tuple(item.name for item in clauses.items), [_projected(clauses, r) for r in rows]
    )
    return _distinct(table) if query.args.get("distinct") else table


def _with_ctes(query: exp.Select, named: Named) -> Named:
    for cte in query.ctes:
        named = _with_cte(cte, named)
    return named


def _with_cte(cte: exp.CTE, named: Named) -> Named:
    return lambda name: (
        answered(cte.this, named) if name.lower() == cte.alias.lower() else named(name)
    )


def _where(query: exp.Select, relation: Relation) -> Relation:
    if query.args.get("where") is None:
        return relation
    condition = resolve(query.args["where"].this, relation.scope)
    return Relation(relation.fields, [row for row in relation.rows if true(condition, row)])


def _windowed(clauses: Clauses, rows: list[Row]) -> tuple[Clauses, list[Row]]:
    """Each row once for each window that its time is in, and not at all when it has no time."""
    calls = list(dict.fromkeys(clauses.find(_window_call)))
    if not calls:
        return clauses, rows
    if len(calls) > 1:
        raise Unsupported("the reference knows one window(…) in a query, as Spark does")
    replaced = clauses.replaced({calls[0]: key_column(_WINDOW)})
    return replaced, [row | {_WINDOW: w} for row in rows for w in _windows(calls[0], row)]


def _window_call(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name == "window"


def _windows(call: exp.Expr, row: Row) -> Iterator[Window]:
    time, *lengths = [evaluate(argument, row) for argument in call.expressions]
    moment = cast(time, "TIMESTAMP")
    if not isinstance(moment, Timestamp):
        return iter(())
    length, slide, offset = (interval(text, None).us for text in _three(lengths))
    return windows_of(moment, length, slide, offset)


def _three(lengths: list[Value]) -> tuple[str, str, str]:
    """Length, slide and offset of window(ts, length[, slide[, offset]])."""
    if not lengths or not all(isinstance(text, str) for text in lengths):
        raise Unsupported(
            "the reference knows window(ts, length[, slide[, offset]]) with text lengths"
        )
    length = lengths[0]
    slide = lengths[1] if len(lengths) > 1 else length
    return length, slide, lengths[2] if len(lengths) > 2 else "0 seconds"


def _grouped(clauses: Clauses, rows: list[Row]) -> tuple[Clauses, list[Row]]:
    """One row for each group: its keys and aggregates. Without keys there is exactly one."""
    calls = list(dict.fromkeys(clauses.find(aggregating)))
    keys: dict[exp.Expr, Key] = {key: ("", f"key{i}") for i, key in enumerate(clauses.keys)}
    values: dict[exp.Expr, Key] = {call: ("", f"value{i}") for i, call in enumerate(calls)}
    new = clauses.replaced({node: key_column(key) for node, key in (values | keys).items()})
    _refuse_ungrouped(new)
    groups = _groups(list(keys), rows)
    return new, [
        {key: evaluate(node, group[0]) for node, key in keys.items()}
        | {key: aggregate(node, group) for node, key in values.items()}
        for group in groups
    ]


def _groups(keys: list[exp.Expr], rows: list[Row]) -> list[list[Row]]:
    if not keys:
        return [rows]
    groups: dict[tuple[Value, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(grouping(evaluate(k, row)) for k in keys), []).append(row)
    return list(groups.values())


def _refuse_ungrouped(clauses: Clauses) -> None:
    for column in clauses.find(lambda node: isinstance(node, exp.Column)):
        if column.text("table"):
            raise BadDefinition(
                f"the column '{column.name}' is neither grouped by nor inside an aggregate",
                hint=f"add {column.name} to GROUP BY, or say max({column.name}).",
            )


def _ordered(rows: list[Row], orders: tuple[Order, ...]) -> list[Row]:
    # Sorting is stable, so the last key is sorted by first.
    for wanted in reversed(orders):
        rows = _ordered_by(rows, wanted)
    return rows


def _ordered_by(rows: list[Row], wanted: Order) -> list[Row]:
    keyed = [(evaluate(wanted.expression, row), row) for row in rows]
    nulls = [row for value, row in keyed if value is None]
    others = [(value, row) for value, row in keyed if value is not None]
    rank = cmp_to_key(sort_order)
    others.sort(key=lambda pair: rank(pair[0]), reverse=wanted.descending)
    found = [row for _, row in others]
    return nulls + found if wanted.nulls_first else found + nulls


def _limited(rows: list[Row], query: exp.Select) -> list[Row]:
    limit = query.args.get("limit")
    return rows if limit is None else rows[: int(evaluate(limit.args["expression"], {}))]


def _projected(clauses: Clauses, row: Row) -> dict[str, Value]:
    hidden = {name: value for (_, name), value in row.items() if name in HIDDEN}
    return hidden | {item.name.lower(): evaluate(item.expression, row) for item in clauses.items}


def _distinct(table: Table) -> Table:
    names = [name.lower() for name in table.names]
    plain = [{name: row[name] for name in names} for row in table.rows]
    rows = {tuple(map(grouping, row.values())): row for row in plain}
    return Table(table.names, list(rows.values()))
