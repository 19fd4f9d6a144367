"""The answer of one SELECT, step by step in the order of SQL:

    FROM → WHERE → window → OVER → GROUP BY → aggregates → HAVING → SELECT → ORDER BY → LIMIT.

A step that makes new columns (the window, running values, the
group's keys, each aggregate) puts their values into
the row under the alias "" and writes the new column in place of the expression, so that one
`evaluate` serves every clause. Rows in which nothing was grouped keep their event's position in
the log.
tests/testing/test_views.py checks each step.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cmp_to_key

from sqlglot import exp

from headrace.core.errors import BadDefinition, Unsupported
from headrace.testing.reference.aggregates import aggregate, aggregating
from headrace.testing.reference.clauses import SelectClauses, SortItem, clauses_of
from headrace.testing.reference.expressions import evaluate, true
from headrace.testing.reference.names import HIDDEN, key_column, resolve
from headrace.testing.reference.order import EVENT_TIME, by_key
from headrace.testing.reference.relations import Clock, SelectInput, Table, TableLookup
from headrace.testing.reference.running import with_running
from headrace.testing.reference.sources import relation_of
from headrace.testing.reference.values import Key, Row, Value, grouping, sort_order
from headrace.testing.reference.windows import window_call, windowed

_WINDOW: Key = ("", "window")


def run_select(query: exp.Select, named: TableLookup) -> Table:
    """The answer of a query, given what the names in its FROM stand for."""
    relation = relation_of(query, _with_ctes(query, named), run_select)
    relation = _where(query, relation)
    clauses = clauses_of(query, relation.scope)
    clauses, rows = _windowed(clauses, relation.rows)
    clauses, rows = _with_running_values(clauses, rows)
    if clauses.grouped:
        clauses, rows = _grouped(clauses, rows)
    rows = [row for row in rows if clauses.having is None or true(clauses.having, row)]
    rows = _limited(_ordered(rows, clauses.order), query)
    names = tuple(item.name for item in clauses.items)
    clock = _clock(clauses, relation.clock)
    table = Table(names, [_projected(clauses, row) for row in rows], clock)
    return _distinct(table) if query.args.get("distinct") else table


def _with_ctes(query: exp.Select, named: TableLookup) -> TableLookup:
    for cte in query.ctes:
        named = _with_cte(cte, named)
    return named


def _with_cte(cte: exp.CTE, named: TableLookup) -> TableLookup:
    return lambda name: (
        run_select(cte.this, named) if name.lower() == cte.alias.lower() else named(name)
    )


def _where(query: exp.Select, relation: SelectInput) -> SelectInput:
    if query.args.get("where") is None:
        return relation
    condition = resolve(query.args["where"].this, relation.scope)
    return replace(relation, rows=[row for row in relation.rows if true(condition, row)])


def _clock(clauses: SelectClauses, clock: Clock | None) -> Clock | None:
    """The clock of a derived stream, if its time column is among the items."""
    if clock is None or clauses.grouped:
        return None
    time = key_column(clock.key)
    keys = [("", item.name.lower()) for item in clauses.items if item.expression == time]
    return replace(clock, key=keys[0]) if keys else None


def _windowed(clauses: SelectClauses, rows: list[Row]) -> tuple[SelectClauses, list[Row]]:
    """Each row once for each window that it is in."""
    calls = list(dict.fromkeys(clauses.find(window_call)))
    if not calls:
        return clauses, rows
    if len(calls) > 1:
        raise Unsupported("a query can have only one window")
    others = [key for key in clauses.keys if calls[0] not in key.walk()]
    replaced = clauses.replaced({calls[0]: key_column(_WINDOW)})
    return replaced, [row | {_WINDOW: w} for row, w in windowed(calls[0], others, rows)]


def _with_running_values(
    clauses: SelectClauses, rows: list[Row]
) -> tuple[SelectClauses, list[Row]]:
    calls = list(dict.fromkeys(clauses.find(lambda node: isinstance(node, exp.Window))))
    keys: dict[exp.Expr, Key] = {call: ("", f"running{i}") for i, call in enumerate(calls)}
    for call, key in keys.items():
        rows = with_running(call, key, rows)
    return clauses.replaced({call: key_column(key) for call, key in keys.items()}), rows


def _grouped(clauses: SelectClauses, rows: list[Row]) -> tuple[SelectClauses, list[Row]]:
    """One row for each group: its keys and aggregates. Without keys there is exactly one."""
    calls = list(dict.fromkeys(clauses.find(aggregating)))
    keys: dict[exp.Expr, Key] = {key: ("", f"key{i}") for i, key in enumerate(clauses.keys)}
    values: dict[exp.Expr, Key] = {call: ("", f"value{i}") for i, call in enumerate(calls)}
    new = clauses.replaced({node: key_column(key) for node, key in (values | keys).items()})
    _refuse_ungrouped(new)
    groups = by_key(keys, rows) if keys else [rows]
    return new, [
        {key: evaluate(node, group[0]) for node, key in keys.items()}
        | {key: aggregate(node, group) for node, key in values.items()}
        for group in groups
    ]


def _refuse_ungrouped(clauses: SelectClauses) -> None:
    for column in clauses.find(lambda node: isinstance(node, exp.Column)):
        if column.text("table"):
            raise BadDefinition(
                f"the column '{column.name}' is neither grouped by nor inside an aggregate",
                hint=f"add {column.name} to GROUP BY, or use max({column.name}).",
            )


def _ordered(rows: list[Row], orders: tuple[SortItem, ...]) -> list[Row]:
    # Sorting is stable, so the last key is sorted by first.
    for wanted in reversed(orders):
        rows = _ordered_by(rows, wanted)
    return rows


def _ordered_by(rows: list[Row], wanted: SortItem) -> list[Row]:
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


def _projected(clauses: SelectClauses, row: Row) -> dict[str, Value]:
    carried = (*HIDDEN, EVENT_TIME)
    # Of a pair of events, the left one's: a later entry of a dict would win.
    hidden = {name: value for (_, name), value in reversed(row.items()) if name in carried}
    return hidden | {item.name.lower(): evaluate(item.expression, row) for item in clauses.items}


def _distinct(table: Table) -> Table:
    names = [name.lower() for name in table.names]
    plain = [{name: row[name] for name in names} for row in table.rows]
    rows = {tuple(map(grouping, row.values())): row for row in plain}
    return Table(table.names, list(rows.values()))
