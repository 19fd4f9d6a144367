"""FROM, JOIN and LATERAL VIEW: which rows a SELECT sees before it filters or groups.

A `Table` is what a name stands for: a stream's events, a table's rows or a query's answer. A
`Relation` is the rows in reach of one SELECT, with a key for each column. A LEFT JOIN keeps a row
that meets nothing once, with NULL for the other side; an unknown condition is not a meeting.
tests/testing/test_views.py checks the joins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from headrace.core.errors import Unsupported
from headrace.testing.reference.expressions import evaluate, true
from headrace.testing.reference.names import HIDDEN, Field, Scope, resolve
from headrace.testing.reference.order import EVENT_TIME
from headrace.testing.reference.values import Row, Value


@dataclass(frozen=True, slots=True)
class Table:
    """Rows by column name in lower case; `names` are the columns as they were written."""

    names: tuple[str, ...]
    rows: list[dict[str, Value]]


@dataclass(frozen=True, slots=True)
class Relation:
    """The rows in reach of a SELECT."""

    fields: tuple[Field, ...]
    rows: list[Row]

    @property
    def scope(self) -> Scope:
        return Scope(self.fields)


Named = Callable[[str], Table]  # what a name in FROM stands for
Answered = Callable[[exp.Select, Named], Table]  # how a query inside FROM is answered


def relation_of(query: exp.Select, named: Named, answered: Answered) -> Relation:
    """The rows of FROM, joined and exploded. Without FROM there is one row without columns."""
    if query.args.get("from_") is None:
        return Relation((), [{}])
    relation = _source(query.args["from_"].this, named, answered)
    for join in query.args.get("joins") or []:
        relation = _joined(relation, join, _source(join.this, named, answered))
    for lateral in query.args.get("laterals") or []:
        relation = _exploded(relation, lateral)
    return relation


def _source(node: exp.Expr, named: Named, answered: Answered) -> Relation:
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select):
        return aliased(answered(node.this, named), node.alias)
    if not isinstance(node, exp.Table):
        raise Unsupported(f"the reference does not know {node.sql(dialect='spark')} in FROM")
    return aliased(named(node.name), node.alias or node.name)


def aliased(table: Table, alias: str) -> Relation:
    """The table's rows under an alias, with the columns that every event has beside its own."""
    declared = {name.lower() for name in table.names}
    hidden = [name for name in HIDDEN if name not in declared]
    fields = [Field(alias, name) for name in table.names]
    fields += [Field(alias, name, hidden=True) for name in hidden]
    keys = [(field.key, field.name.lower()) for field in fields]
    keys += [((alias.lower(), EVENT_TIME), EVENT_TIME)]
    rows = [{key: row[name] for key, name in keys if name in row} for row in table.rows]
    return Relation(tuple(fields), rows)


def _joined(left: Relation, join: exp.Join, right: Relation) -> Relation:
    side, kind = join.side.upper(), join.kind.upper()
    if (
        side not in {"", "LEFT"}
        or kind not in {"", "INNER", "OUTER", "CROSS"}
        or join.args.get("using")
    ):
        raise Unsupported(
            f"the reference does not know {join.sql(dialect='spark').strip()}",
            hint="INNER JOIN, LEFT JOIN and CROSS JOIN with ON are known.",
        )
    fields = left.fields + right.fields
    condition = join.args.get("on") or exp.true()
    condition = resolve(condition, Scope(fields))
    rows = _meetings(left.rows, right.rows, condition, outer=side == "LEFT")
    return Relation(fields, list(rows))


def _meetings(left: list[Row], right: list[Row], on: exp.Expr, *, outer: bool) -> Iterator[Row]:
    for row in left:
        met = [row | other for other in right if true(on, row | other)]
        yield from met or ([row] if outer else [])


def _exploded(relation: Relation, lateral: exp.Lateral) -> Relation:
    if not isinstance(lateral.this, exp.Explode) or lateral.this.expressions:
        raise Unsupported(
            f"the reference does not know {lateral.sql(dialect='spark').strip()}",
            hint="LATERAL VIEW [OUTER] explode(array) t AS c is known.",
        )
    columns = lateral.args["alias"].args.get("columns") or []
    field = Field(lateral.alias, columns[0].name if columns else "col")
    array = resolve(lateral.this.this, relation.scope)
    rows = _elements(relation.rows, array, field, outer=bool(lateral.args.get("outer")))
    return Relation((*relation.fields, field), list(rows))


def _elements(rows: list[Row], array: exp.Expr, field: Field, *, outer: bool) -> Iterator[Row]:
    for row in rows:
        items = evaluate(array, row) or ([None] if outer else [])
        yield from (row | {field.key: item} for item in items)
