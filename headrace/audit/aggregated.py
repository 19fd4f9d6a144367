"""A view before its finish: its keys and its aggregates, which two engines compute.

What follows the aggregates is computed by one engine from their values (headrace.certified), and
has Spark's semantics; a second engine would differ there without a defect. HAVING is part of it, so
an audit covers groups that the answer leaves out too. tests/audit/test_aggregated.py checks the
definition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgspec
from sqlglot import exp

from headrace.compile.calls import has_aggregate, read_call
from headrace.compile.plan import CallPlan, KeyPlan, OutputPlan, ViewPlan
from headrace.core.aggregate import AGGREGATES, Approximation
from headrace.core.origin import Origin
from headrace.define.dialect import parse_select, sql_of

_ORIGIN = Origin("plan", 1)


def aggregated(view: ViewPlan) -> ViewPlan:
    """The view with its keys and aggregates as outputs."""
    keys = tuple(_key(view, key) for key in view.keys)
    calls = tuple(_call(view, call) for call in view.calls)
    return msgspec.structs.replace(
        view,
        outputs=(*keys, *calls),
        definition=_definition(view),
        having=None,
        order=(),
        limit=None,
    )


def _key(view: ViewPlan, key: KeyPlan) -> OutputPlan:
    shown = next((out.name for out in view.outputs if out.key == key.column), key.name)
    return OutputPlan(shown, key.type, key.column, key=key.column)


def _call(view: ViewPlan, call: CallPlan) -> OutputPlan:
    shown = next((out.name for out in view.outputs if out.finish == call.column), None)
    name = shown or f"{call.name} ({call.column})"
    return OutputPlan(name, call.type, call.column, estimate=_estimate(view, call))


def _estimate(view: ViewPlan, call: CallPlan) -> Approximation | None:
    rough = AGGREGATES[call.name].estimate
    # Rows that are merged on read have no counts of their own, only sketches.
    return replace(rough, when="always") if rough and view.regroups else rough


def _definition(view: ViewPlan) -> str:
    select = parse_select(view.definition, _ORIGIN)
    keys, calls = _keys(select), _calls(select)
    assert (len(keys), len(calls)) == (len(view.keys), len(view.calls)), view.definition
    select.set("distinct", None)
    for part in ("having", "order", "limit"):
        select.set(part, None)
    if keys:
        select.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    items = [exp.alias_(key, f"_k{n}") for n, key in enumerate(keys)]
    items += [exp.alias_(call, f"_c{n}") for n, call in enumerate(calls)]
    select.set("expressions", items)
    return sql_of(select)


def _keys(select: exp.Select) -> list[exp.Expr]:
    """The GROUP BY expressions of the view, with aliases resolved."""
    items = [item.unalias() for item in select.expressions]
    group = select.args.get("group")
    if group is None:
        return [item.copy() for item in items] if select.args.get("distinct") else []
    if group.args.get("all") or [e.name.upper() for e in group.expressions] == ["ALL"]:
        return [item.copy() for item in items if not has_aggregate(item)]
    aliases = {i.alias.lower(): i.this for i in select.expressions if isinstance(i, exp.Alias)}
    return [_meant(e, items, aliases).copy() for e in group.expressions]


def _meant(node: exp.Expr, items: list[exp.Expr], aliases: dict[str, exp.Expr]) -> exp.Expr:
    if isinstance(node, exp.Literal) and not node.is_string:
        return items[int(node.name) - 1]
    plain = isinstance(node, exp.Column) and not node.table
    found = aliases.get(node.name.lower()) if plain else None
    # An alias of its own column (url AS url) means the column.
    return found if found is not None and found.name.lower() != node.name.lower() else node


def _calls(select: exp.Select) -> list[exp.Expr]:
    """The aggregates, each once, in the order in which the compiler meets them."""
    having, order = select.args.get("having"), select.args.get("order")
    places = [item.unalias() for item in select.expressions]
    places += [having.this] if having else []
    places += [item.this for item in order.expressions] if order else []
    found: dict[object, exp.Expr] = {}
    for place in places:
        for node in _outermost(place):
            found.setdefault(read_call(node, _ORIGIN), node.copy())
    return list(found.values())


def _outermost(node: exp.Expr) -> Iterator[exp.Expr]:
    if read_call(node, _ORIGIN):
        yield node
        return
    for value in node.args.values():
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, exp.Expr):
                yield from _outermost(part)
