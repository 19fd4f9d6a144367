"""The clauses of a SELECT with every name resolved, as data.

`clauses_of` knows what a clause may name: a select item the earlier items, GROUP BY columns, then
items by name or by number, HAVING and ORDER BY items before columns. Every item has a name, and no
two the same: an expression without AS is refused, since engines name it differently.
tests/testing/test_views.py checks each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from headrace.core.errors import BadDefinition, Unsupported
from headrace.testing.reference.aggregates import aggregating
from headrace.testing.reference.names import NameScope, key_column, resolve
from headrace.testing.reference.windows import window_call

_KNOWN = {
    "expressions", "from_", "joins", "laterals", "where", "group", "having", "order", "limit",
    "distinct", "with_",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SelectItem:
    name: str
    expression: exp.Expr


@dataclass(frozen=True, slots=True)
class SortItem:
    expression: exp.Expr
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class SelectClauses:
    items: tuple[SelectItem, ...]
    grouped: bool
    keys: tuple[exp.Expr, ...] = ()
    having: exp.Expr | None = None
    order: tuple[SortItem, ...] = ()

    def find(self, test: Callable[[exp.Expr], bool]) -> Iterator[exp.Expr]:
        """The outermost parts of any clause that pass the test."""
        wholes = [item.expression for item in self.items] + [o.expression for o in self.order]
        wholes += [*self.keys, *([self.having] if self.having else [])]
        for whole in wholes:
            yield from (part for part in whole.dfs(prune=test) if test(part))

    def replaced(self, new: Mapping[exp.Expr, exp.Expr]) -> SelectClauses:
        """The same clauses with these expressions, wherever they stand, replaced."""

        def change(whole: exp.Expr) -> exp.Expr:
            return whole.transform(lambda part: new[part].copy() if part in new else part)

        return replace(
            self,
            items=tuple(replace(i, expression=change(i.expression)) for i in self.items),
            keys=tuple(map(change, self.keys)),
            having=change(self.having) if self.having else None,
            order=tuple(replace(o, expression=change(o.expression)) for o in self.order),
        )


def clauses_of(query: exp.Select, scope: NameScope) -> SelectClauses:
    """Resolve every clause after WHERE."""
    _refuse_unknown(query)
    items = _items(query, scope)
    names = {item.name.lower(): item.expression for item in items}
    late = replace(scope, names=names, names_first=True)
    keys = _keys(query.args.get("group"), items, replace(scope, names=names))
    having = query.args.get("having")
    having = resolve(having.this, late) if having else None
    order = tuple(_order(node, items, late) for node in _ordered_nodes(query))
    wholes = [*(i.expression for i in items), *(o.expression for o in order)]
    grouped = bool(query.args.get("group") or having or any(map(_aggregates, wholes)))
    return SelectClauses(items, grouped, keys, having, order)


def _refuse_unknown(query: exp.Select) -> None:
    for name, clause in query.args.items():
        if clause and name not in _KNOWN:
            clause_name = name.strip("_").upper()
            raise Unsupported(f"the reference interpreter does not support clause {clause_name}")


def _items(query: exp.Select, scope: NameScope) -> tuple[SelectItem, ...]:
    """The select list, stars written out. An item may name the ones before it."""
    items: list[SelectItem] = []
    for node in query.expressions:
        reach = replace(scope, names={item.name.lower(): item.expression for item in items})
        items += (
            _star(node, scope) if node.is_star else [SelectItem(name_of(node), _body(node, reach))]
        )
    names = [item.name.lower() for item in items]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise BadDefinition(f"duplicate column name '{twice}' in the select list")
    return tuple(items)


def _body(node: exp.Expr, scope: NameScope) -> exp.Expr:
    return resolve(node.unalias(), scope)


def _star(node: exp.Expr, scope: NameScope) -> list[SelectItem]:
    if any(node.find(exp.Star).args.values()):  # type: ignore[union-attr]
        raise Unsupported("* with EXCEPT, REPLACE or RENAME is not supported")
    alias = node.text("table").lower()
    wanted = [f for f in scope.fields if not f.hidden and alias in {"", f.key[0]}]
    return [SelectItem(field.name, key_column(field.key)) for field in wanted]


def name_of(node: exp.Expr) -> str:
    """The name of a select item in the answer."""
    if isinstance(node, exp.Alias | exp.Column):
        return node.alias_or_name
    if isinstance(node, exp.Dot):
        return str(node.args["expression"].name)
    if window_call(node):
        return str(node.name)
    raise Unsupported(
        f"the expression {node.sql(dialect='spark')} has no name", hint="name it with AS."
    )


def _keys(
    group: exp.Expr | None, items: tuple[SelectItem, ...], scope: NameScope
) -> tuple[exp.Expr, ...]:
    if group is None:
        return ()
    if group.find(exp.Cube, exp.Rollup, exp.GroupingSets):
        raise Unsupported("GROUPING SETS, CUBE and ROLLUP are not supported")
    if group.args.get("all"):
        return tuple(item.expression for item in items if not _aggregates(item.expression))
    return tuple(_by_number(node, items) or resolve(node, scope) for node in group.expressions)


def _by_number(node: exp.Expr, items: tuple[SelectItem, ...]) -> exp.Expr | None:
    if not node.is_int:
        return None
    number = int(node.name)
    if not 1 <= number <= len(items):
        raise BadDefinition(f"position {number} is not in the select list of {len(items)} items")
    return items[number - 1].expression


def _ordered_nodes(query: exp.Select) -> list[exp.Expr]:
    order = query.args.get("order")
    return list(order.expressions) if order else []


def _order(node: exp.Expr, items: tuple[SelectItem, ...], scope: NameScope) -> SortItem:
    whole = _by_number(node.this, items) or resolve(node.this, scope)
    descending = bool(node.args.get("desc"))
    # sqlglot fills in Spark's default: NULLs first when ascending, last when descending.
    return SortItem(whole, descending, bool(node.args.get("nulls_first")))


def _aggregates(node: exp.Expr) -> bool:
    """Whether the node has an aggregate in it; one with OVER is a running value instead."""

    def over(part: exp.Expr) -> bool:
        return isinstance(part, exp.Window)

    return any(aggregating(part) for part in node.walk(prune=over) if not over(part))
