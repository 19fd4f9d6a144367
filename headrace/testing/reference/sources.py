"""FROM, JOIN and LATERAL VIEW: which rows a SELECT sees before it filters or groups.

Each source stands under its alias, with the columns that every event has beside its own; then come
the joins (`joins.py`), from left to right, then the explosions of arrays.
tests/testing/test_views.py checks them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from headrace.core.errors import Unsupported
from headrace.testing.reference.expressions import evaluate
from headrace.testing.reference.joins import join_rows
from headrace.testing.reference.names import HIDDEN, VisibleColumn, resolve
from headrace.testing.reference.order import EVENT_TIME
from headrace.testing.reference.relations import QueryRunner, SelectInput, Table, TableLookup
from headrace.testing.reference.values import Row


def relation_of(query: exp.Select, named: TableLookup, answered: QueryRunner) -> SelectInput:
    """The rows of FROM, joined and exploded. Without FROM there is one row without columns."""
    if query.args.get("from_") is None:
        return SelectInput((), [{}])
    relation = _source(query.args["from_"].this, named, answered)
    for join in query.args.get("joins") or []:
        relation = join_rows(relation, join, _source(join.this, named, answered))
    for lateral in query.args.get("laterals") or []:
        relation = _exploded(relation, lateral)
    return relation


def _source(node: exp.Expr, named: TableLookup, answered: QueryRunner) -> SelectInput:
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select):
        return aliased(answered(node.this, named), node.alias)
    if not isinstance(node, exp.Table):
        raise Unsupported(f"FROM {node.sql(dialect='spark')} is not supported")
    return aliased(named(node.name), node.alias or node.name)


def aliased(table: Table, alias: str) -> SelectInput:
    """The table's rows under an alias, with the columns that every event has beside its own."""
    declared = {name.lower() for name in table.names}
    hidden = [name for name in HIDDEN if name not in declared]
    fields = [VisibleColumn(alias, name) for name in table.names]
    fields += [VisibleColumn(alias, name, hidden=True) for name in hidden]
    keys = [(field.key, field.name.lower()) for field in fields]
    keys += [((alias.lower(), EVENT_TIME), EVENT_TIME)]
    rows = [{key: row[name] for key, name in keys if name in row} for row in table.rows]
    clock = table.clock and replace(table.clock, key=(alias.lower(), table.clock.key[1]))
    return SelectInput(tuple(fields), rows, clock)


def _exploded(relation: SelectInput, lateral: exp.Lateral) -> SelectInput:
    if not isinstance(lateral.this, exp.Explode) or lateral.this.expressions:
        raise Unsupported(
            f"{lateral.sql(dialect='spark').strip()} is not supported",
            hint="write LATERAL VIEW [OUTER] explode(array) t AS c.",
        )
    columns = lateral.args["alias"].args.get("columns") or []
    field = VisibleColumn(lateral.alias, columns[0].name if columns else "col")
    array = resolve(lateral.this.this, relation.scope)
    rows = _elements(relation.rows, array, field, outer=bool(lateral.args.get("outer")))
    return replace(relation, fields=(*relation.fields, field), rows=list(rows))


def _elements(
    rows: list[Row], array: exp.Expr, field: VisibleColumn, *, outer: bool
) -> Iterator[Row]:
    for row in rows:
        items = evaluate(array, row) or ([None] if outer else [])
        yield from (row | {field.key: item} for item in items)
