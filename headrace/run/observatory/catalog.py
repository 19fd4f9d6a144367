"""The catalog of a project: all deployed streams, tables, views, rules, watches and sinks.

Columns and versions are those of the deployed plan, texts and origins those of the project's files.
tests/run/test_observatory.py reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from headrace.api.resources.catalog import (
    Catalog,
    CatalogColumn,
    CatalogRequest,
    CatalogRule,
    CatalogSink,
    CatalogStream,
    CatalogTable,
    CatalogView,
    CatalogWatch,
    ViewVersion,
    WatermarkInfo,
)
from headrace.compile.explain import estimates_of
from headrace.compile.lineage import ColumnRef, Lineage, lineage_of, reads_of
from headrace.compile.plan import DerivedPlan, Plan, StreamPlan, ViewPlan
from headrace.core.position import Position
from headrace.core.rule import hidden
from headrace.core.schema import Schema
from headrace.core.time import iso, now_us
from headrace.define.functions import FunctionDefinition
from headrace.define.project import Project
from headrace.ingest.generator import sample
from headrace.run.observatory.completions import functions, keywords
from headrace.run.observatory.observed_project import ObservedProject
from headrace.serving import rules, watches
from headrace.serving.catalog import read_tables, read_versions
from headrace.serving.database import Transaction
from headrace.serving.database_store import DatabaseStore
from headrace.serving.history import read_generations
from headrace.serving.watches import ACTIVE

WATCHES_MAX = 1_000  # in the catalog; GET /v1/watches returns all of them


def catalog_of(service: ObservedProject, request: CatalogRequest) -> Catalog:
    """The catalog of a deployed project."""
    plan, own = service.deployed(), service.functions()
    with service.store.read() as db:
        return _CatalogReader(service.project, plan, db).catalog(own)


def view_of(project: Project, plan: Plan, store: DatabaseStore, view: ViewPlan) -> CatalogView:
    """The entry of one view."""
    with store.read() as db:
        return _CatalogReader(project, plan, db).view(view)


class _CatalogReader:
    """Reads the catalog in one transaction."""

    def __init__(self, project: Project, plan: Plan, db: Transaction) -> None:
        self.project, self.plan, self.db = project, plan, db

    def catalog(self, own: Sequence[FunctionDefinition]) -> Catalog:
        lineage = lineage_of(self.project, self.plan)
        types = self._types(lineage)
        return Catalog(
            self.plan.name,
            [
                *(self._stream(stream) for stream in self.plan.streams),
                *(self._derived(derived, lineage, types) for derived in self.plan.shown_derived),
            ],
            list(self._tables()),
            [self.view(view) for view in self.plan.shown_views],
            list(self._rules()),
            list(self._watches()),
            list(self._sinks()),
            functions(own),
            keywords(),
        )

    def _stream(self, stream: StreamPlan) -> CatalogStream:
        definition, mark = self.project.streams.get(stream.name), stream.watermark
        return CatalogStream(
            stream.name,
            "declared",
            _declared(stream.schema, definition.schema if definition else stream.schema),
            str(definition.origin) if definition else "",
            source=definition.source if definition else None,
            format=stream.format,
            partitions=stream.partitions,
            watermark=WatermarkInfo(mark[0], mark[1] // 1000) if mark else None,
            key=stream.key,
            id=stream.id,
            sample=sample(definition, now_us()) if definition else None,
        )

    def _derived(
        self, derived: DerivedPlan, lineage: Lineage, types: Mapping[ColumnRef, str | None]
    ) -> CatalogStream:
        definition = self.project.queries.get(derived.name)
        names = [column.column for column in lineage.columns if column.object == derived.name]
        return CatalogStream(
            derived.name,
            "derived",
            [CatalogColumn(name, types.get(ColumnRef(derived.name, name))) for name in names],
            str(definition.origin) if definition else "",
            sql=definition.query if definition else derived.sql,
            reads=reads_of(self.project).get(derived.name, []),
        )

    def _types(self, lineage: Lineage) -> dict[ColumnRef, str | None]:
        """The types of declared columns, and of columns that are plain copies of them."""
        schemas = {name: one.schema for name, one in self.project.tables.items()}
        schemas |= {name: one.schema for name, one in self.project.streams.items()}
        found: dict[ColumnRef, str | None] = {
            ColumnRef(name, column.name): column.type.spark
            for name, schema in schemas.items()
            for column in schema.columns
        }
        made = {d.name: dict(d.carry.made or ()) for d in self.plan.derived if d.carry}
        for column in lineage.columns:
            known = made.get(column.object, {}).get(column.column)
            if known is None and column.plain and len(column.sources) == 1:
                known = found.get(column.sources[0])
            found[ColumnRef(column.object, column.column)] = known
        return found

    def _tables(self) -> Iterator[CatalogTable]:
        loaded = read_tables(self.db)
        for table in self.plan.shown_tables:
            definition, (version, at) = (
                self.project.tables.get(table.name),
                loaded.get(table.name, ("", 0)),
            )
            yield CatalogTable(
                table.name,
                _declared(definition.schema, definition.schema) if definition else [],
                str(definition.origin) if definition else "",
                table.format,
                table.location,
                version or None,
                iso(at) if at else None,
            )

    def view(self, view: ViewPlan) -> CatalogView:
        definition = self.project.queries.get(view.name)
        return CatalogView(
            view.name,
            view.kind,
            columns_of(view),
            view.origin,
            definition.query if definition else view.definition or view.read_sql,
            view.stream,
            list(view.reads or (*view.streams, *view.tables)),
            list(self._versions(view)),
        )

    def _versions(self, view: ViewPlan) -> Iterator[ViewVersion]:
        for version in read_versions(self.db, view.stream) if view.kept else ():
            if version.name == view.name:
                live_at = self._live_at(view.stream, version.since) if version.live else None
                yield ViewVersion(version.id, version.state, list(version.since.offsets), live_at)

    def _live_at(self, stream: str, since: Position) -> str | None:
        """When the first generation was promoted that includes the start of the version."""
        found = [g.promoted_at for g in read_generations(self.db, stream) if since <= g.boundary]
        return iso(found[-1]) if found else None

    def _rules(self) -> Iterator[CatalogRule]:
        known = rules.newest_versions(self.db)
        for rule in self.plan.rules:
            definition = known.get(rule.name)
            yield CatalogRule(
                rule.name,
                definition.state if definition else "enabled",
                rule.severity,
                rule.origin,
                rule.text,
                [column for column in rule.columns if not hidden(column)],
                list(rule.streams),
                [destination.name for destination in rule.destinations],
            )

    def _watches(self) -> Iterator[CatalogWatch]:
        reads = {shape.name: list(shape.streams) for shape in self.plan.shapes}
        for watch in watches.statuses(self.db, ACTIVE)[:WATCHES_MAX]:
            streams = reads.get(watch.shape, [])
            yield CatalogWatch(watch.name, watch.state, watch.severity, watch.text, streams)

    def _sinks(self) -> Iterator[CatalogSink]:
        for sink in self.plan.sinks:
            view, guarantee = sink.subscription.view, sink.guarantee.value
            to = sink.destination
            yield CatalogSink(sink.name, view, to.kind, to.target, guarantee, sink.origin)


def _declared(schema: Schema, in_files: Schema) -> list[CatalogColumn]:
    """The columns of a schema, with generated expressions as they are written in the files."""
    texts = {column.name: column.generated.sql for column in in_files.computed if column.generated}
    return [
        CatalogColumn(c.name, c.type.spark, c.nullable, generated=texts.get(c.name))
        for c in schema.columns
    ]


def columns_of(view: ViewPlan) -> list[CatalogColumn]:
    """The columns of a view, and whether they are exact or estimates."""
    estimates = {estimate.column: estimate for estimate in estimates_of(view)}
    return [
        CatalogColumn(output.name, output.type, key=output.keyed)
        if (found := estimates.get(output.name)) is None
        else CatalogColumn(
            output.name,
            output.type,
            exact=False,
            error=found.error,
            error_of=found.of,
            why=found.why,
        )
        for output in view.outputs
    ]
