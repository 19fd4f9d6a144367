"""Derived streams are inlined into the queries that read them; a carried stream as the SELECT after
its fold.

The hidden columns (partition, offset, arrival, lateness) are passed through every step, because an
event's position in the log decides ties and boundaries. A row of a join has those of its left
event, or of its right one if there is no left.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sqlglot import exp

from headrace.compile.calls import has_aggregate
from headrace.compile.computed import no_raw
from headrace.compile.join import KINDS, NEW, JoinSide, StreamJoin, changed, place
from headrace.compile.join_bound import JoinBoundReader
from headrace.compile.resolve import Queries, ResolvedQuery
from headrace.core.errors import UnknownColumn, Unsupported
from headrace.core.event import CUT, DATED, HIDDEN, RAW, TIME
from headrace.core.flow import flow_name
from headrace.core.origin import Origin
from headrace.core.pattern import RowsPerMatch
from headrace.core.schema import Schema
from headrace.define.dialect import parse_query
from headrace.define.project import Project

THRESHOLD_COLUMNS = ("began", "ended")  # the columns of a threshold stream besides its keys
ROW_COLUMNS = (
    *HIDDEN,
    CUT,
    f"timestamp_micros({TIME}) AS {DATED}",
)  # with each row that a pattern makes
NO_STREAMS: Mapping[str, exp.Select] = MappingProxyType({})
_NOT_STATELESS = ("group", "having", "order", "limit", "distinct", "qualify", "windows", "offset")


def check_stateless(resolved: ResolvedQuery) -> None:
    """Refuse a derived stream that is not stateless."""
    found = [part for part in _NOT_STATELESS if resolved.select.args.get(part)]
    found += ["aggregate"] if _aggregates(resolved.select) else []
    if found:
        raise Unsupported(
            f"stream '{resolved.definition.name}' is not stateless: it has {found[0].upper()}",
            hint="a derived stream can only select, filter, explode, join and compute running "
            "aggregates with OVER; aggregate in a CREATE VIEW that reads it.",
            origin=resolved.definition.query_origin,
        )


def _aggregates(select: exp.Select) -> bool:
    """Whether an aggregate is used without OVER."""
    return any(has_aggregate(item) and item.find(exp.Window) is None for item in select.expressions)


def inline_streams(
    resolved: ResolvedQuery,
    ordered: Queries,
    joins: Mapping[str, StreamJoin] | None = None,
    written: Mapping[str, exp.Select] = NO_STREAMS,
) -> exp.Select:
    """The query's SELECT with every derived stream replaced by its SELECT, or by that in `written`.

    With `joins`, by the name of the query, it gives only new rows.
    """
    select = resolved.select.copy()
    for table in list(select.find_all(exp.Table)):
        name = next((n for n in resolved.streams if n.lower() == table.name.lower()), "")
        if name in ordered:
            alias = exp.TableAlias(this=exp.to_identifier(table.alias_or_name))
            inner = _with_hidden(ordered[name], ordered, joins, written)
            table.replace(exp.Subquery(this=inner, alias=alias))
        elif items := resolved.declared.get(name):
            table.replace(_declared(table, (*items, *([NEW] if joins is not None else []))))
    if joins and resolved.joined:
        changed(select, joins[resolved.definition.name])
    return select


def _declared(table: exp.Table, items: tuple[str, ...]) -> exp.Subquery:
    """A subquery of a stream with its computed columns, to replace its name."""
    alias = exp.TableAlias(this=exp.to_identifier(table.alias_or_name))
    inner = parse_query(f"SELECT {', '.join(items)} FROM {table.name}", Origin("computed", 1))
    return exp.Subquery(this=inner, alias=alias)


def streams_below(resolved: ResolvedQuery, ordered: Queries) -> list[ResolvedQuery]:
    """The derived streams that the query reads, directly and through others."""
    source = ordered.get(resolved.stream or "")
    return [source, *streams_below(source, ordered)] if source else []


def _with_hidden(
    source: ResolvedQuery,
    ordered: Queries,
    joins: Mapping[str, StreamJoin] | None,
    written: Mapping[str, exp.Select],
) -> exp.Select:
    if known := written.get(source.definition.name):
        return known.copy()
    inner = inline_streams(source, ordered, joins, written)
    passed = {item.alias_or_name.lower() for item in inner.expressions}
    if any(item.is_star for item in inner.expressions):
        return inner
    single = joins is not None and len(base_streams(source, ordered)) == 1
    folds = [below for below in streams_below(source, ordered) if below.definition.name in written]
    made = [CUT] * any(folds) + [DATED] * any(map(has_row_time, folds))
    for name in (*HIDDEN, *([NEW] if single else []), *made):
        if name not in passed:
            text = f"SELECT {place(_visible_aliases(source), name)}"
            item = parse_query(text, Origin("hidden", 1)).expressions[0]
            named = item if isinstance(item, exp.Column) else exp.alias_(item, name)
            inner.select(named, copy=False)
    return inner


def has_row_time(resolved: ResolvedQuery) -> bool:
    """Whether a stream's rows are made of several events and have a time of their own."""
    return resolved.definition.match is not None or resolved.definition.threshold is not None


def _visible_aliases(resolved: ResolvedQuery) -> tuple[str, ...]:
    """The aliases of the streams whose columns the query may name."""
    return resolved.aliases[:1] if _kind(resolved) == "SEMI" else resolved.aliases


def row_place(resolved: ResolvedQuery, column: str) -> str:
    """SQL of a hidden column in the query."""
    return place(_visible_aliases(resolved), column)


def base_streams(resolved: ResolvedQuery, ordered: Queries) -> tuple[str, ...]:
    """The declared streams that a query reads, also through derived ones, left before right."""
    found: tuple[str, ...] = ()
    for name in resolved.streams:
        found += base_streams(ordered[name], ordered) if name in ordered else (name,)
    return found


def flow_of(resolved: ResolvedQuery, ordered: Queries) -> str:
    """The name of the flow that the query reads: a stream, or joined streams."""
    return flow_name(base_streams(resolved, ordered))


def check_raw(resolved: ResolvedQuery, ordered: Queries, project: Project) -> None:
    """A derived stream has `_raw` only if it selects it by name; a CSV event has no JSON."""
    origin = resolved.definition.query_origin
    for name in resolved.streams if resolved.names_raw else ():
        if name in project.streams:
            if project.streams[name].format != "json":
                raise no_raw(name, origin)
            continue
        if RAW not in {item.alias_or_name.lower() for item in ordered[name].select.expressions}:
            raise UnknownColumn(
                f"stream '{name}' has no {RAW}",
                hint=f"select {RAW} in it or, preferably, only the fields that you need.",
                origin=origin,
            )


def join_below(
    resolved: ResolvedQuery, ordered: Queries, joins: Mapping[str, StreamJoin]
) -> ResolvedQuery | None:
    """The query that joins: this one, or the derived stream under it."""
    if resolved.definition.name in joins:
        return resolved
    source = ordered.get(resolved.stream or "")
    return join_below(source, ordered, joins) if source else None


def passes_on(resolved: ResolvedQuery, ordered: Queries, column: str) -> bool:
    """Whether the query can read a column of the declared stream under its own name."""
    source = ordered.get(resolved.stream or "")
    if source is None:
        return True
    if source.definition.makes_rows:
        return False
    kept = any(
        item.is_star
        or (item.alias_or_name.lower() == item.unalias().name.lower() == column.lower())
        for item in source.select.expressions
        if item.is_star or isinstance(item.unalias(), exp.Column)
    )
    return kept and passes_on(source, ordered, column)


def all_tables(resolved: ResolvedQuery, ordered: Queries) -> tuple[str, ...]:
    """The tables that the query reads, also through derived streams."""
    found = list(resolved.tables)
    for name in resolved.streams:
        found += all_tables(ordered[name], ordered) if name in ordered else ()
    return tuple(dict.fromkeys(found))


def column_names(
    resolved: ResolvedQuery, ordered: Queries, schemas: Mapping[str, Schema]
) -> set[str]:
    """The lowercase names of the columns that the query's sources have."""
    names = {name.lower() for table in resolved.tables for name in schemas[table].names}
    for stream in resolved.streams:
        names |= _names_of(stream, ordered, schemas)
    for lateral in resolved.select.args.get("laterals") or []:
        names |= {column.name.lower() for column in lateral.args["alias"].columns}
    return names


def _names_of(stream: str, ordered: Queries, schemas: Mapping[str, Schema]) -> set[str]:
    if stream in schemas:
        return {name.lower() for name in schemas[stream].names}
    source = ordered[stream]
    if source.definition.match:
        return _matched_names(source, ordered, schemas)
    if threshold := source.definition.threshold:
        return {name.lower() for name in (*threshold.keys, *THRESHOLD_COLUMNS)}
    if rules := source.definition.rules:
        made = {name.lower() for name in (*rules.fields, rules.column)}
        return _names_of(source.stream or "", ordered, schemas) | made
    names: set[str] = set()
    for item in source.select.expressions:
        names |= (
            column_names(source, ordered, schemas) if item.is_star else {item.alias_or_name.lower()}
        )
    return names


def _matched_names(
    source: ResolvedQuery, ordered: Queries, schemas: Mapping[str, Schema]
) -> set[str]:
    """The lowercase names of the columns of a pattern's SELECT."""
    match = source.definition.match
    assert match is not None
    given = {*match.keys, *(measure.name for measure in match.measures)}
    if match.rows is not RowsPerMatch.ONE:
        given |= column_names(source, ordered, schemas)
    items = parse_query(match.select, source.definition.query_origin).expressions
    named = {item.alias_or_name for item in items if not item.is_star}
    star = given if len(named) < len(items) else set()
    return {name.lower() for name in named | star}


# Joins of streams


def stream_join(
    resolved: ResolvedQuery, ordered: Queries, project: Project, schemas: Mapping[str, Schema]
) -> StreamJoin:
    """The join of the query's two streams; Unsupported if it cannot be maintained."""
    name, origin = resolved.definition.name, resolved.definition.query_origin
    kind = _kind(resolved)
    if kind is None:
        raise Unsupported(
            f"'{name}' uses a type of join that is not supported between streams",
            hint="use JOIN, LEFT JOIN, RIGHT JOIN, FULL JOIN or LEFT SEMI JOIN.",
            origin=origin,
        )
    if len(base_streams(resolved, ordered)) > 2:
        raise Unsupported(
            f"'{name}' joins a stream that is already a join",
            hint="join two streams at a time, and join the results in a view over views.",
            origin=origin,
        )
    if resolved.definition.kind == "stream" and resolved.select.is_star:
        raise Unsupported(
            f"stream '{name}' selects * from joined streams, so it would have duplicate columns",
            hint="list the columns in SELECT.",
            origin=origin,
        )
    sides = [_side(resolved, n, ordered, project) for n in range(2)]
    names = [_names_of(stream, ordered, schemas) for stream in resolved.streams]

    def side_of(column: exp.Column) -> JoinSide | None:
        for side, known in zip(sides, names, strict=True):
            if column.table.lower() == side.alias.lower() or (
                not column.table and column.name.lower() in known
            ):
                return side
        return None

    reader = JoinBoundReader(sides[0], sides[1], side_of, name)
    lower, upper = reader.read(resolved.select.args["joins"][0].args.get("on"), origin)
    return StreamJoin(kind, sides[0], sides[1], lower, upper)


def _kind(resolved: ResolvedQuery) -> str | None:
    if not resolved.joined:
        return "NONE"
    join = resolved.select.args["joins"][0]
    side, kind = str(join.side or "").upper(), str(join.kind or "").upper()
    if kind == "SEMI":
        return "SEMI" if side in {"", "LEFT"} else None
    plain = kind in {"", "INNER", "OUTER"} and not join.method
    return KINDS.get(side) if plain else None


def _side(resolved: ResolvedQuery, number: int, ordered: Queries, project: Project) -> JoinSide:
    stream = resolved.streams[number]
    time = event_time(stream, ordered, project)
    base = base_streams(resolved, ordered)[number]
    if time is None:
        marked = project.streams[base].watermark
        raise Unsupported(
            f"'{resolved.definition.name}' joins stream '{stream}', which has no event time",
            hint=f"select the column '{marked.column}' of '{base}' in '{stream}'."
            if marked
            else f"add WATERMARK ts DELAY OF INTERVAL 1 MINUTE to stream '{base}'.",
            origin=resolved.definition.query_origin,
        )
    return JoinSide(resolved.aliases[number], base, time)


def event_time(stream: str, ordered: Queries, project: Project) -> str | None:
    """The event time column of a declared or derived stream."""
    if stream in project.streams:
        mark = project.streams[stream].watermark
        return mark.column if mark else None
    source = ordered[stream]
    if source.definition.threshold:
        return THRESHOLD_COLUMNS[1]
    if source.definition.makes_rows:
        return None
    below = event_time(source.stream or "", ordered, project)
    for item in source.select.expressions if below else ():
        column = item.unalias()
        mine = isinstance(column, exp.Column) and column.table in {"", source.stream_alias}
        if item.is_star or (mine and column.name.lower() == str(below).lower()):
            return below if item.is_star else item.alias_or_name
    return None
