"""Column lineage and dependents, derived from the definitions.

The sources of a column are columns of the relations that its definition reads, one step back; `*`
instead of a column means the rows themselves, as in count(*). Filters such as WHERE are not
sources. Sources that cannot be determined are left out, never guessed.
tests/compile/test_lineage.py reads each kind of definition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import msgspec
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, build_scope

from headrace.compile.computed import names_in
from headrace.compile.derive import event_time
from headrace.compile.lineage_sources import ROWS, SourceColumns, Sources, column_sources
from headrace.compile.plan import Plan
from headrace.compile.resolve import ResolvedQuery, resolve
from headrace.core.event import RAW
from headrace.core.origin import Origin
from headrace.core.rule import hidden, stream_of, view_of
from headrace.define.definitions import Sender, StreamDefinition
from headrace.define.dialect import Headrace, parse_expression, parse_query
from headrace.define.project import Project


class ColumnRef(msgspec.Struct, frozen=True, order=True):
    """A column of a stream, table or view; `*` means its rows."""

    object: str
    column: str


class ColumnLineage(msgspec.Struct, frozen=True):
    """A column, and the columns that it is made of; `plain` if it is one of them as it is."""

    object: str
    column: str
    sources: list[ColumnRef] = msgspec.field(name="from")
    plain: bool = False


class Lineage(msgspec.Struct, frozen=True):
    """One step back for each column, and all that depends on each name, near or far."""

    columns: list[ColumnLineage]
    touched_by: dict[str, list[str]]


def lineage_of(project: Project, plan: Plan | None = None) -> Lineage:
    """The lineage of all definitions. A plan adds the names that Spark gives to unnamed columns,
    and the columns of processors.
    """
    ordered = resolve(project)
    reading = _LineageReader(project, ordered, _outputs(plan) if plan else {})
    columns = [c for stream in project.streams.values() for c in _computed(stream)]
    columns += [column for name in ordered for column in reading.columns(name) if not hidden(name)]
    return Lineage(columns, _touched_by(project, ordered))


def _computed(stream: StreamDefinition) -> Iterator[ColumnLineage]:
    """The lineage of a stream's computed columns; the source of `_raw` is the whole event."""
    stored = {name.lower(): name for name in stream.schema.stored.names} | {RAW: ROWS}
    for column in stream.schema.computed:
        assert column.generated is not None
        named = names_in(parse_expression(column.generated)) & stored.keys()
        sources = sorted(ColumnRef(stream.name, stored[name]) for name in named)
        yield ColumnLineage(stream.name, column.name, sources)


def reads_of(project: Project) -> dict[str, list[str]]:
    """What each name reads or is written by, one step back: queries, rules, watches, sinks, and the
    streams that some of them write.
    """
    found: dict[str, list[str]] = {}
    for name, sources in _edges(project, resolve(project)):
        found.setdefault(name, []).extend(sources)
    return found


def _outputs(plan: Plan) -> dict[str, tuple[str, ...]]:
    views = {view.name: tuple(output.name for output in view.outputs) for view in plan.views}
    made = {d.name: d.carry.made for d in plan.derived if d.carry and d.carry.processor}
    return views | {
        name: tuple(column for column, _ in found or ()) for name, found in made.items()
    }


def _reads(resolved: ResolvedQuery) -> tuple[str, ...]:
    return (*resolved.streams, *resolved.tables, *resolved.views)


@dataclass
class _LineageReader:
    """Reads definitions in topological order."""

    project: Project
    ordered: Mapping[str, ResolvedQuery]
    outputs: Mapping[str, tuple[str, ...]]
    known: dict[str, tuple[str, ...]] = field(default_factory=dict)  # columns of what was read
    plain: set[str] = field(default_factory=set)  # unchanged columns of the current SELECT

    def __post_init__(self) -> None:
        self.known |= {name: found.schema.names for name, found in self.project.streams.items()}
        self.known |= {name: found.schema.names for name, found in self.project.tables.items()}

    def columns(self, name: str) -> list[ColumnLineage]:
        """The columns of one definition, in order."""
        resolved, outputs = self.ordered[name], self.outputs.get(name, ())
        selected: dict[str, Sources] = {}
        for column, sources in self._selected(resolved):
            selected.setdefault(column, sources)  # of two with the same name, the stream's is first
        below = SourceColumns(self._named(resolved, selected), self._time(resolved), outputs)
        if resolved.definition.rules:
            below = replace(below, passed=self.known[resolved.stream or ""])
        said = not (resolved.definition.makes_rows or resolved.definition.rules)
        plain = self.plain if said else set[str]()
        found = [
            ColumnLineage(
                name, column, sorted(ColumnRef(*source) for source in sources), column in plain
            )
            for column, sources in column_sources(resolved.definition, below)
        ]
        self.known[name] = tuple(column.column for column in found)
        return found

    def _time(self, resolved: ResolvedQuery) -> str | None:
        """The column of the event time that the definition reads."""
        if resolved.stream is None:
            return None
        return event_time(resolved.stream, dict(self.ordered), self.project)

    def _named(self, resolved: ResolvedQuery, selected: dict[str, Sources]) -> dict[str, Sources]:
        """The columns by their names in answers, if these are those of the SELECT."""
        names = self.outputs.get(resolved.definition.name, ())
        if resolved.definition.makes_rows or len(names) != len(selected):
            return selected
        return dict(zip(names, selected.values(), strict=True))

    def _selected(self, resolved: ResolvedQuery) -> Iterator[tuple[str, Sources]]:
        """Each column of the SELECT, and its sources."""
        scope = self._scope(resolved)
        spelled = {i.name.lower(): i.name for i in resolved.select.find_all(exp.Identifier)}
        spelled |= {c.lower(): c for n in _reads(resolved) for c in self.known.get(n, ())}
        spelled |= {i.alias.lower(): i.alias for i in resolved.select.expressions if i.alias}
        if scope is None:
            return
        self.plain = set()
        for item in scope.expression.expressions:
            name = spelled.get(item.alias_or_name, item.alias_or_name)
            if isinstance(item.unalias(), exp.Column):
                self.plain.add(name)
            yield name, set(self._sources(item.unalias(), scope))

    def _scope(self, resolved: ResolvedQuery) -> Scope | None:
        """The SELECT with stars expanded and columns qualified."""
        schema: dict[str, object] = {
            name: dict.fromkeys(self.known[name], "unknown") for name in _reads(resolved)
        }
        try:
            tree = qualify(
                resolved.select.copy(),
                schema=schema,
                dialect=Headrace,
                validate_qualify_columns=False,
                quote_identifiers=False,
                identify=False,
            )
        except SqlglotError:
            return None
        return build_scope(tree)

    def _sources(self, item: exp.Expr, scope: Scope) -> Iterator[tuple[str, str]]:
        for column in item.find_all(exp.Column):
            yield from self._source(column, scope)
        counts = [count for count in item.find_all(exp.Count) if isinstance(count.this, exp.Star)]
        for source in scope.sources.values() if counts else ():
            if isinstance(source, exp.Table):
                yield self._declared(source.name), ROWS

    def _source(self, column: exp.Column, scope: Scope) -> Iterator[tuple[str, str]]:
        source = scope.sources.get(column.table)
        if column.name.lower() == RAW and not column.table:
            source = next(iter(scope.sources.values()))  # with two, it would be ambiguous in Spark
        if isinstance(source, exp.Table):
            name = self._declared(source.name)
            spelled = {known.lower(): known for known in self.known[name]}
            if column.name.lower() in spelled:
                yield name, spelled[column.name.lower()]
            elif column.name.lower() == RAW:
                yield name, ROWS
        elif source is not None:
            # The source of LATERAL VIEW is the exploded expression.
            yield from self._sources(source.expression.this, scope)

    def _declared(self, name: str) -> str:
        return next(known for known in self.known if known.lower() == name.lower())


def _touched_by(project: Project, ordered: Mapping[str, ResolvedQuery]) -> dict[str, list[str]]:
    """The dependents of each name, the nearest first."""
    users: dict[str, list[str]] = {name: [] for name in (*project.streams, *project.tables)}
    for name, sources in _edges(project, ordered):
        users.setdefault(name, [])
        for source in sources:
            users.setdefault(source, []).append(name)
    return {name: _reached(name, users) for name in users}


def _edges(
    project: Project, ordered: Mapping[str, ResolvedQuery]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each name with what it reads or is written by."""
    rules = {made: name for name in project.rules for made in (stream_of(name), view_of(name))}
    yield from ((rules.get(name, name), _reads(resolved)) for name, resolved in ordered.items())
    for name, sink in project.sinks.items():
        yield name, (sink.subscription.view,)
    for watch in project.watches.values():
        yield watch.name, tuple(_read_by(watch.query))
    for sender in (d for d in project.definitions if isinstance(d, Sender)):
        yield from ((d.target, (sender.name,)) for d in sender.destinations if d.feeds)


def _read_by(query: str) -> Iterator[str]:
    tree = parse_query(query, Origin("definition", 1))
    yield from (table.name for table in tree.find_all(exp.Table))


def _reached(name: str, users: Mapping[str, list[str]]) -> list[str]:
    found: dict[str, None] = {}
    near = users[name]
    while near:
        found |= dict.fromkeys(near)
        near = [far for one in near for far in users.get(one, ()) if far not in found]
    return [one for one in found if one != name]
