"""Derived streams vanish: each is written into the queries that read it, a carried one as what it
selects after its fold.

The hidden columns (partition, offset, arrival, lateness) go through every step, because an
event's place in the log decides ties and boundaries wherever the event has become.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sqlglot import exp

from headrace.compile.calls import aggregates_in
from headrace.compile.resolve import HIDDEN, Resolved
from headrace.core.errors import Unsupported
from headrace.core.schema import Schema

NOTHING: Mapping[str, exp.Select] = MappingProxyType({})
_NOT_STATELESS = ("group", "having", "order", "limit", "distinct", "qualify", "windows", "offset")


def check_stateless(resolved: Resolved) -> None:
    """Refuse a derived stream that needs more than one event at a time."""
    found = [part for part in _NOT_STATELESS if resolved.select.args.get(part)]
    found += ["aggregate"] if _aggregates(resolved.select) else []
    if found:
        raise Unsupported(
            f"stream '{resolved.definition.name}' is not stateless: it has {found[0].upper()}",
            hint="a derived stream selects, filters, explodes, joins with tables and has running "
            "values with OVER; aggregate in a CREATE VIEW that reads it.",
            origin=resolved.definition.query_origin,
        )


def _aggregates(select: exp.Select) -> bool:
    """Whether an aggregate stands there that is no running value."""
    return any(aggregates_in(item) and item.find(exp.Window) is None for item in select.expressions)


def inlined(
    resolved: Resolved, ordered: dict[str, Resolved], written: Mapping[str, exp.Select] = NOTHING
) -> exp.Select:
    """The query's SELECT with every derived stream in it replaced by what it stands for, which
    `written` says of some.
    """
    select = resolved.select.copy()
    source = ordered.get(resolved.stream or "")
    if source is None:
        return select
    inner = written.get(source.definition.name) or inlined(source, ordered, written)
    inner = inner.copy()
    passed = {item.alias_or_name.lower() for item in inner.expressions}
    if not any(item.is_star for item in inner.expressions):
        hidden = [name for name in HIDDEN if name not in passed]
        inner.select(*(exp.column(n, table=source.stream_alias) for n in hidden), copy=False)
    for table in list(select.find_all(exp.Table)):
        if table.name.lower() == (resolved.stream or "").lower():
            table.replace(
                exp.Subquery(
                    this=inner, alias=exp.TableAlias(this=exp.to_identifier(table.alias_or_name))
                )
            )
    return select


def streams_below(resolved: Resolved, ordered: dict[str, Resolved]) -> list[Resolved]:
    """The derived streams that the query reads, directly and through others."""
    source = ordered.get(resolved.stream or "")
    return [source, *streams_below(source, ordered)] if source else []


def base_stream(resolved: Resolved, ordered: dict[str, Resolved]) -> str:
    """The source stream at the bottom of a chain of derived ones."""
    name = resolved.stream or ""
    return base_stream(ordered[name], ordered) if name in ordered else name


def passes_on(resolved: Resolved, ordered: dict[str, Resolved], column: str) -> bool:
    """Whether a column of the source stream is in reach of the query under its own name."""
    source = ordered.get(resolved.stream or "")
    if source is None:
        return True
    kept = any(
        item.is_star
        or (item.alias_or_name.lower() == item.unalias().name.lower() == column.lower())
        for item in source.select.expressions
        if item.is_star or isinstance(item.unalias(), exp.Column)
    )
    return kept and passes_on(source, ordered, column)


def all_tables(resolved: Resolved, ordered: dict[str, Resolved]) -> tuple[str, ...]:
    """The tables that the query reads, also through derived streams."""
    below = all_tables(ordered[resolved.stream], ordered) if resolved.stream in ordered else ()
    return tuple(dict.fromkeys((*resolved.tables, *below)))


def column_names(
    resolved: Resolved, ordered: dict[str, Resolved], schemas: dict[str, Schema]
) -> set[str]:
    """The lowercase names of the columns that the query's sources have."""
    names = {name.lower() for table in resolved.tables for name in schemas[table].names}
    stream = resolved.stream or ""
    if stream in schemas:
        return names | {name.lower() for name in schemas[stream].names}
    source = ordered[stream]
    for item in source.select.expressions:
        names |= (
            column_names(source, ordered, schemas) if item.is_star else {item.alias_or_name.lower()}
        )
    for lateral in resolved.select.args.get("laterals") or []:
        names |= {column.name.lower() for column in lateral.args["alias"].columns}
    return names
