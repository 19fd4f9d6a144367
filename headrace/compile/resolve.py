"""Resolves the names in definitions; unknown names, cycles and invalid combinations are refused.

A derived stream reads one stream, or two that it joins, and any number of tables. A view reads the
same, or other views and tables, by any query. All later passes rely on this.
tests/plans/error_*.sql have what is refused, each with its message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from headrace.compile.computed import named_columns
from headrace.compile.determinism import refuse_relative_times
from headrace.compile.rules import check_names, errors_name_rules, rule_queries
from headrace.core.errors import BadDefinition, UnknownName, Unsupported, did_you_mean
from headrace.core.event import RAW
from headrace.core.rule import hidden
from headrace.define.definitions import QueryDefinition
from headrace.define.dialect import parse_query
from headrace.define.embedded import words_of
from headrace.define.project import Project


@dataclass(frozen=True, slots=True)
class ResolvedQuery:
    """A query with its syntax tree and the relations that it reads, by their declared names."""

    definition: QueryDefinition
    select: exp.Select
    stream: str | None  # stream or derived stream it reads
    stream_alias: str
    tables: tuple[str, ...]
    views: tuple[str, ...]
    joined: str | None = None  # the stream that it is joined with
    joined_alias: str = ""
    over_views: exp.Query | None = None  # the whole query, of a view over views
    # SQL of the columns of each declared stream, if the query names computed columns of it.
    declared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    names_raw: bool = False
    raw: tuple[str, ...] = ()  # the declared streams whose `_raw` it reads

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(name for name in (self.stream, self.joined) if name)

    @property
    def aliases(self) -> tuple[str, ...]:
        """The aliases of the query's streams."""
        return (self.stream_alias, self.joined_alias) if self.joined else (self.stream_alias,)


Queries = Mapping[str, ResolvedQuery]  # by name


def resolve(project: Project) -> Queries:
    """All queries of a project, in topological order."""
    check_names(project)
    with errors_name_rules():
        queries = project.queries | rule_queries(project)
        found = {name: resolve_one(project, query) for name, query in queries.items()}
    ordered: dict[str, ResolvedQuery] = {}
    for name in found:
        _place(name, found, ordered, ())
    return ordered


def _place(
    name: str,
    found: dict[str, ResolvedQuery],
    ordered: dict[str, ResolvedQuery],
    path: tuple[str, ...],
) -> None:
    if name in ordered or name not in found:
        return
    if name in path:
        circle = " reads ".join((*path[path.index(name) :], name))
        raise BadDefinition(
            f"definitions are circular: {circle}", origin=found[name].definition.origin
        )
    resolved = found[name]
    for source in (*resolved.streams, *resolved.views):
        _place(source, found, ordered, (*path, name))
    ordered[name] = resolved


def resolve_one(project: Project, query: QueryDefinition) -> ResolvedQuery:
    """Resolve one query, without a check for cycles."""
    select = parse_query(query.query, query.query_origin)
    if found := _over_views(project, query, select):
        return found
    if not isinstance(select, exp.Select):
        raise _unsupported(query, "UNION, EXCEPT and INTERSECT are not supported in a definition")
    if select.args.get("with_") or len(list(select.find_all(exp.Select))) > 1:
        raise _unsupported(
            query,
            "a subquery or WITH is not supported in a definition",
            "give the inner query a name of its own with CREATE STREAM … AS or CREATE VIEW … AS.",
        )
    if not select.args.get("from_"):
        raise _unsupported(
            query, f"{query.kind} '{query.name}' has no FROM clause", "add FROM with a stream."
        )
    refuse_relative_times(select, query.query_origin)
    if select.find(exp.TableSample):
        raise _unsupported(query, "TABLESAMPLE is not supported in a definition")
    sources = [(_find(project, query, table.name), table) for table in select.find_all(exp.Table)]
    streams = [(name, table) for name, table in sources if _is_stream(project, name)]
    tables = tuple(dict.fromkeys(name for name, _ in sources if name in project.tables))
    views = tuple(
        dict.fromkeys(n for n, _ in sources if n not in tables and not _is_stream(project, n))
    )
    _check_mixture(query, [name for name, _ in streams], tables, views)
    streams.sort(key=lambda pair: pair[1] is not select.args["from_"].this)
    if streams:
        _check_joins(query, select, [table for _, table in streams])
    read = [(name, table.alias_or_name) for name, table in streams]
    stream, alias = read[0] if read else (None, "")
    joined, joined_alias = read[1] if len(read) > 1 else (None, "")
    words = words_of(query)
    below = [project.streams[name] for name, _ in streams if name in project.streams]
    named = {stream.name: named_columns(stream, select, words) for stream in below}
    return ResolvedQuery(
        query, select, stream, alias, tables, views, joined, joined_alias,
        declared={name: columns.items for name, columns in named.items() if columns.computed},
        names_raw=RAW in words,
        raw=tuple(name for name, columns in named.items() if columns.raw),
    )  # fmt: skip


def _over_views(project: Project, query: QueryDefinition, whole: exp.Query) -> ResolvedQuery | None:
    """A view over views and tables, which may be any query."""
    if query.kind != "view" or not _names(whole) & project.queries.keys():
        return None
    names = dict.fromkeys(_find(project, query, name) for name in _names(whole))
    if any(_is_stream(project, name) for name in names):
        return None
    refuse_relative_times(whole, query.query_origin)
    tables = tuple(name for name in names if name in project.tables)
    views = tuple(name for name in names if name not in project.tables)
    select = whole if isinstance(whole, exp.Select) else whole.find(exp.Select)
    assert isinstance(select, exp.Select)
    return ResolvedQuery(query, select, None, "", tables, views, over_views=whole)


def _names(query: exp.Query) -> dict[str, None]:
    """The relations that a query reads, in order, without its own WITH clauses."""
    made = {cte.alias.lower() for cte in query.find_all(exp.CTE)}
    tables = (table.name for table in query.find_all(exp.Table))
    return {name: None for name in tables if name.lower() not in made}


def _find(project: Project, query: QueryDefinition, name: str) -> str:
    others = {*project.sinks, *project.rules, *project.watches}
    known = {d.name.lower(): d.name for d in project.definitions if d.name not in others}
    if name.lower() in known:
        return known[name.lower()]
    shown = [each for each in known.values() if not hidden(each)]
    raise UnknownName(
        f"{query.kind} '{query.name}' reads '{name}', which is not defined",
        hint=did_you_mean(name, shown, f"available: {', '.join(shown)}."),
        origin=query.query_origin,
    )


def _is_stream(project: Project, name: str) -> bool:
    query = project.queries.get(name)
    return name in project.streams or (query is not None and query.kind == "stream")


def _check_mixture(
    query: QueryDefinition, streams: list[str], tables: tuple[str, ...], views: tuple[str, ...]
) -> None:
    if query.kind == "stream" and views:
        raise _unsupported(query, f"stream '{query.name}' reads the view '{views[0]}'", _READS)
    if query.rules and len(streams) > 1:
        raise _unsupported(
            query,
            f"rules '{query.name}' read two streams",
            "join the streams in a CREATE STREAM … AS that the rules read.",
        )
    if len(streams) > 2:
        raise _unsupported(
            query,
            f"'{query.name}' joins more than two streams",
            "join two streams at a time, and join the results in a view over views.",
        )
    if views and streams:
        raise _unsupported(query, f"view '{query.name}' reads both views and streams", _READS)
    if not streams and not views:
        raise _unsupported(query, f"'{query.name}' reads no stream", _READS)


def _check_joins(query: QueryDefinition, select: exp.Select, streams: list[exp.Table]) -> None:
    """Every row must come from an event: a row of a table alone would be repeated in each epoch."""
    joins = select.args.get("joins") or []
    if len(streams) > 1 and (not joins or joins[0].this is not streams[1]):
        raise _unsupported(
            query,
            f"'{query.name}' joins a table before its second stream",
            "write FROM a stream JOIN the other stream, then JOIN or LEFT JOIN the tables.",
        )
    sides = {str(join.side or "").upper() for join in joins[len(streams) - 1 :]}
    if sides & {"RIGHT", "FULL"} or (joins and select.args["from_"].this is not streams[0]):
        raise _unsupported(
            query,
            f"'{query.name}' keeps rows of a table that match no event",
            "write FROM the stream, then JOIN or LEFT JOIN the tables.",
        )


_READS = (
    "a stream reads one stream, or joins two, and any number of tables; a view reads the same, or "
    "other views and tables."
)


def _unsupported(query: QueryDefinition, message: str, hint: str | None = None) -> Unsupported:
    return Unsupported(message, hint=hint, origin=query.query_origin)
