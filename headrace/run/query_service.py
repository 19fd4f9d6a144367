"""Ad-hoc queries: the store answers those over views, and Spark those over streams and tables, and
those over views whose SQL is not certified, over the same answers.

Spark runs a query in a process of its own behind the fence, over the master plus the part of the
log that is not yet archived: all events up to one position. `TIMESTAMP AS OF` reads the events that
had arrived by a time, `VERSION AS OF` those before a position such as '120,98'.

Relations that the caller may not read are rejected by name, as far as names can be parsed here.
Behind that, the store and Spark expose only the relations that the caller may read.
tests/run/test_query_service.py checks both, with hostile queries.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
import pyarrow as pa
from sqlglot import exp
from sqlglot.optimizer.scope import traverse_scope

from headrace.access.caller import OWNER, Caller
from headrace.access.operation import Operation
from headrace.api.resources.query import QueryPlan
from headrace.compile.plan import DerivedPlan, Plan
from headrace.core.aggregate import Approximation, largest_error
from headrace.core.cancellation import Cancellation
from headrace.core.errors import BadQuery, HeadraceError, Unsupported
from headrace.core.event import ARRIVED_AT, OFFSET, PARTITION, RAW
from headrace.core.meters import QUERY_SECONDS, SPARK, STORE
from headrace.core.position import Position, parse_position
from headrace.core.time import from_iso, iso
from headrace.define.dialect import Headrace, Verbatim
from headrace.define.layout import Layout
from headrace.define.project import Project
from headrace.define.tokens import words_in
from headrace.run.history import stream_relations, table_relation
from headrace.run.key_columns import with_keys
from headrace.run.read_permission import can_read, check_reads
from headrace.run.running_queries import RunningQueries
from headrace.serving.answer import Answer, AsOf, ColumnInfo
from headrace.serving.catalog import required_plan
from headrace.serving.database_store import DatabaseStore
from headrace.serving.engine import set_memory
from headrace.serving.read import Reader
from headrace.spark.allow_lists import FUNCTIONS
from headrace.spark.query_client import QueryRequest, QueryResult, Relation
from headrace.spark.query_pool import QueryPool

T = TypeVar("T")
_AS_OF = "_as_of_"
# Types of views that Spark does not have, or does not read from Arrow.
_SPARK_TYPES = {"WINDOW": "STRUCT<start: TIMESTAMP, end: TIMESTAMP>", "VARIANT": "STRING"}


@dataclass(frozen=True, slots=True)
class _StreamQuery:
    """A query over streams and tables, the names of its relations, the deployed plan, and its
    caller.
    """

    text: str
    names: set[str]
    plan: Plan
    caller: Caller

    def derived(self) -> tuple[list[DerivedPlan], bool]:
        """The derived streams that are registered, and whether the streams need the column `_raw`.
        Derived streams that read `_raw` are left out of queries that do not need it, because a
        `SELECT *` would return it.
        """
        stateless = [d for d in self.plan.shown_derived if not d.carry]
        wanted = [d for d in stateless if not self.names or d.name.lower() in self.names]
        raw = RAW in _words(self.text) or any(RAW in words_in(d.sql) for d in wanted)
        return [d for d in stateless if raw or RAW not in words_in(d.sql)], raw


class QueryService:
    """Answers ad-hoc queries of a project."""

    def __init__(self, project: Project, store: DatabaseStore) -> None:
        self.project, self.store, self.layout = project, store, Layout.of(project)
        query = project.settings.query
        set_memory(query.engine_memory)
        self.reader = Reader(
            store.db,
            rows_max=query.rows_max,
            seconds_max=query.seconds_max,
            kept_rows_max=query.kept_rows_max,
        )
        self.running = RunningQueries()
        self.pool = QueryPool(project.settings.spark, query, self.layout.work("query"))

    def answer(
        self, text: str, limit: int | None = None, id: str | None = None, caller: Caller = OWNER
    ) -> Answer:
        """Answer a query, which the caller can cancel by its id from another thread."""
        with self.running.registered(id, caller.user) as cancellation:
            return with_keys(text, self._answer(text, limit, cancellation, caller))

    def plan(self, text: str, caller: Caller = OWNER) -> QueryPlan:
        """How a query would be answered."""
        names, plan = self.readable(text, caller)
        readable = partial(can_read, caller, plan)
        if found := self._of_store(text, names, lambda: self.reader.plan(text, readable)):
            relations, sql, steps = found
            return QueryPlan("store", list(relations), sql, steps)
        query = _StreamQuery(text, names, required_plan(plan), caller)
        result, *_ = self._run(query, Cancellation(), explain=True)
        return QueryPlan("spark", sorted(names), text, str(result.rows[0][0]))

    def cancel(self, id: str, caller: Caller = OWNER) -> bool:
        """Cancel the caller's query of this id, or any user's if the caller manages users."""
        of_all_users = caller.allows(Operation.MANAGE, caller.whole_job)
        return self.running.stop(id, None if of_all_users else caller.user)

    def readable(self, text: str, caller: Caller) -> tuple[set[str], Plan | None]:
        """The relations of a query, all of which the caller may read, and the deployed plan."""
        names = _names(text, self.project.settings.query.text_max)
        plan = self.store.deployed()
        check_reads(caller, plan, names)
        return names, plan

    def close(self) -> None:
        self.pool.close()

    def _answer(
        self, text: str, limit: int | None, cancellation: Cancellation, caller: Caller
    ) -> Answer:
        names, plan = self.readable(text, caller)
        readable = partial(can_read, caller, plan)

        def read() -> Answer:
            with QUERY_SECONDS.labels(STORE).time():
                return self.reader.sql(text, limit, cancellation, readable)

        if found := self._of_store(text, names, read):
            return found
        query = _StreamQuery(text, names, required_plan(plan), caller)
        with QUERY_SECONDS.labels(SPARK).time():
            return self._on_spark(query, limit, cancellation)

    def _of_store(self, text: str, names: set[str], read: Callable[[], T]) -> T | None:
        """What the store answers; None if Spark is to answer: a query that is not over views alone,
        or that uses SQL which is available in Spark only.
        """
        if not self.reader.answers_about(names):
            return None
        try:
            return read()
        except Unsupported:
            # A function that is misspelt has a hint here, and Spark takes seconds to start.
            if _calls(text) <= FUNCTIONS:
                return None
            raise

    # Streams, tables, and what views cannot be asked otherwise, on Spark

    def _on_spark(
        self, query: _StreamQuery, limit: int | None, cancellation: Cancellation
    ) -> Answer:
        result, known, estimate = self._run(query, cancellation)
        columns = {c.name: _column_info(c.type, estimate) for c in result.columns}
        rows = [dict(zip(columns, row, strict=True)) for row in result.rows]
        cut = limit is not None and len(rows) > limit
        return Answer(rows[:limit], known, columns, result.truncated and not cut)

    def _run(
        self, query: _StreamQuery, cancellation: Cancellation, *, explain: bool = False
    ) -> tuple[QueryResult, dict[str, AsOf], Approximation | None]:
        """The result of Spark, the position of each stream and view in it, and the largest error of
        the views' columns.
        """
        plan, caller = query.plan, query.caller
        _reject_carried(plan, query.names)
        with tempfile.TemporaryDirectory(dir=self._scratch()) as folder:
            sql, versions = _translate(query.text)
            check_reads(caller, plan, {name for name, _, _ in versions.values()})
            relations, positions = self._relations(query, versions, Path(folder))
            views, known, estimate = self._views(query, Path(folder))
            known |= {n: _as_of(at) for n, at in positions.items() if n.lower() in query.names}
            relations = [*relations, *views]
            relations = [_hidden_from(caller, plan, relation) for relation in relations]
            functions = self.project.functions_file
            path = str(functions) if functions else None
            request = QueryRequest(sql, relations, path, explain)
            return self.pool.run(request, caller.user, cancellation), known, estimate

    def _views(
        self, query: _StreamQuery, folder: Path
    ) -> tuple[list[Relation], dict[str, AsOf], Approximation | None]:
        """The views of the query, as files of one snapshot each, with their positions and the
        largest error of their columns.
        """
        relations, known = list[Relation](), dict[str, AsOf]()
        estimates: list[Approximation | None] = []
        for view in [v.name for v in query.plan.views if v.name.lower() in query.names]:
            table, columns, streams = self.reader.table(view)
            path = folder / f"view{len(relations)}.arrow"
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
            ddl = ", ".join(f"`{c.name}` {_SPARK_TYPES.get(c.type, c.type)}" for c in columns)
            relations.append(Relation(view, kind="arrow_file", paths=[str(path)], schema_ddl=ddl))
            known |= {f"{view} ({stream})": of for stream, of in streams.items()}
            estimates += [column.estimate for column in columns]
        return relations, known, largest_error(estimates)

    def _scratch(self) -> Path:
        path = self.layout.work("query")
        path.mkdir(parents=True, exist_ok=True)
        return path

    def _relations(
        self, query: _StreamQuery, versions: dict[str, tuple[str, str, str]], folder: Path
    ) -> tuple[list[Relation], dict[str, Position]]:
        relations: list[Relation] = []
        positions: dict[str, Position] = {}
        plan, derived, raw = query.plan, *query.derived()
        for stream in plan.streams:
            stored, positions[stream.name] = stream_relations(
                self.layout, stream, folder, raw=raw and stream.format == "json"
            )
            relations += stored
        relations += [table_relation(table, self.project.folder) for table in plan.shown_tables]
        relations += [Relation(each.name, query=each.sql) for each in derived]
        known = {stream.name.lower(): stream for stream in plan.streams}
        for alias, (name, kind, value) in versions.items():
            # The name is inserted into SQL, so it must be the name of a stream of the project.
            found = known.get(name.lower())
            if found is None:
                raise BadQuery(f"AS OF requires a stream, and '{name}' is not a stream")
            sql = _as_of_query(found.name, kind, value, found.partitions)
            relations.append(Relation(alias, query=sql))
        return relations, positions


def _hidden_from(caller: Caller, plan: Plan, relation: Relation) -> Relation:
    """Hide a relation that the caller may not read; other relations can still read it."""
    if relation.name.startswith(_AS_OF) or can_read(caller, plan, relation.name):
        return relation
    return msgspec.structs.replace(relation, hidden=True)


def _column_info(type: str, estimate: Approximation | None) -> ColumnInfo:
    """A column that Spark has computed: from which columns is not known, so each of them may have
    the largest error.
    """
    if estimate is None:
        return ColumnInfo(type, True)
    return ColumnInfo(type, False, estimate.error, estimate.of)


def _as_of(position: Position) -> AsOf:
    return AsOf(0, [], list(position.offsets), None, None, None)


def _reject_carried(plan: Plan, names: set[str]) -> None:
    """The rows of a carried stream are computed by a stateful fold, which only views have."""
    carried = [derived.name for derived in plan.derived if derived.carry]
    if queried := [name for name in carried if name.lower() in names]:
        raise BadQuery(
            f"stream '{queried[0]}' is stateful and can be read only by views",
            hint="query a view over it, or use OVER on the stream that it reads.",
        )


def _names(text: str, text_max: int) -> set[str]:
    """The relations of a query, as far as it can be parsed here.

    They only decide between store and Spark, and name what a caller may not read. A query that is
    not clearly over views goes to Spark, behind the fence.
    """
    if len(text) > text_max:
        return set()
    try:
        trees = [tree for tree in Headrace().parse(text.strip().rstrip(";")) if tree is not None]
        return {
            source.name.lower()
            for tree in trees
            for scope in traverse_scope(tree)
            for source in scope.sources.values()
            if isinstance(source, exp.Table) and not source.db
        }
    except Exception:
        return set()


def _calls(text: str) -> set[str]:
    """The functions of a query that sqlglot does not know, in lower case."""
    trees = Headrace().parse(text.strip().rstrip(";"))
    return {c.name.lower() for tree in trees if tree for c in tree.find_all(exp.Anonymous)}


def _words(text: str) -> frozenset[str]:
    """The words of a query; none if it cannot be tokenized, which the fence rejects."""
    try:
        return words_in(text)
    except HeadraceError:
        return frozenset()


def _translate(text: str) -> tuple[str, dict[str, tuple[str, str, str]]]:
    """The query with each `name … AS OF value` replaced by a relation of its own, and with casts
    from a VARIANT that do not fail.
    """
    if " as of " not in " ".join(text.lower().split()) and ":" not in text:
        return text, {}
    try:
        trees = Verbatim().parse(text.strip().rstrip(";"))
    except Exception:
        return text, {}
    # The fence rejects AS OF and second statements in a text that is not translated.
    if len(trees) != 1 or trees[0] is None:
        return text, {}
    tree = trees[0]
    found = _replace_time_travel(tree)
    again = found or tree.find(exp.JSONExtract)
    return (tree.sql(dialect=Headrace) if again else text), found


def _replace_time_travel(tree: exp.Expr) -> dict[str, tuple[str, str, str]]:
    """Replace each `name … AS OF value` by an alias; returns what was replaced, by alias."""
    found: dict[str, tuple[str, str, str]] = {}
    for table in tree.find_all(exp.Table):
        version = table.args.get("version")
        if version is None or version.expression is None or table.db:
            continue
        alias = f"{_AS_OF}{len(found)}"
        found[alias] = table.name, version.name.upper(), version.expression.name
        table.set("version", None)
        shown = table.alias_or_name
        table.set("this", exp.to_identifier(alias))
        table.set("alias", exp.TableAlias(this=exp.to_identifier(shown)))
    return found


def _as_of_query(name: str, kind: str, value: str, partitions: int) -> str:
    if kind == "TIMESTAMP":
        try:
            time = iso(from_iso(value))
        except ValueError as error:
            raise BadQuery(
                f"'{value}' is not a timestamp such as '2026-11-15T19:00:00Z'"
            ) from error
        return f"SELECT * FROM `{name}` WHERE {ARRIVED_AT} <= TIMESTAMP '{time}'"
    offsets = parse_position(value, name, partitions).offsets
    conditions = [
        f"({PARTITION} = {n} AND {OFFSET} < {offset})" for n, offset in enumerate(offsets)
    ]
    return f"SELECT * FROM `{name}` WHERE {' OR '.join(conditions)}"
