"""An ad-hoc query goes to the store when it speaks of views, and to Spark when it speaks of
streams and tables.

On Spark it runs in a process of its own behind the fence, over the master plus the part of the
log that is not yet archived: all events up to one position. `TIMESTAMP AS OF` asks for the events
that had arrived by a time, `VERSION AS OF` for those before a position such as '120,98'.

What the caller may not read is refused by name, as far as names can be read here; and whatever this
misses meets a store and a Spark in which nothing else is to be seen.
tests/run/test_questions.py checks both ways and the hostile ones.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa
from sqlglot import exp
from sqlglot.optimizer.scope import traverse_scope

from headrace.access.caller import OWNER, Caller
from headrace.access.operation import Operation
from headrace.api.resources.query import QueryPlan
from headrace.compile.plan import DerivedPlan, Plan
from headrace.core.cancellation import Cancellation
from headrace.core.errors import BadQuery, HeadraceError, NotReady
from headrace.core.event import ARRIVED_AT, OFFSET, PARTITION, RAW
from headrace.core.meters import QUERY_SECONDS, SPARK, STORE
from headrace.core.position import Position, parse_position
from headrace.core.time import from_iso, iso
from headrace.define.dialect import Headrace, Verbatim
from headrace.define.layout import Layout
from headrace.define.project import Project
from headrace.define.tokens import words_in
from headrace.run.history import stream_relations, table_relation
from headrace.run.reading import check_reads, reads
from headrace.run.running import Running
from headrace.serving.answer import Answer, AsOf, ColumnInfo
from headrace.serving.engine import set_memory
from headrace.serving.read import Reader
from headrace.serving.sqlite_store import SqliteStore
from headrace.spark.query_client import QueryRequest, QueryResult, Relation
from headrace.spark.query_pool import QueryPool

_MOMENT = "_as_of_"
# What Spark calls the types of a view that it does not have, or does not take from Arrow.
_SPARK = {"WINDOW": "STRUCT<start: TIMESTAMP, end: TIMESTAMP>", "VARIANT": "STRING"}


@dataclass(frozen=True, slots=True)
class _Asked:
    """A query over streams and tables: the names it speaks of, over what is deployed, and whose it
    is.
    """

    text: str
    names: set[str]
    plan: Plan
    caller: Caller

    def derived(self) -> tuple[list[DerivedPlan], bool]:
        """The derived streams that it may read, and whether these or the query name `_raw`: those
        that do are left out of a query that does not speak of them, whose star would have it.
        """
        stateless = [d for d in self.plan.shown_derived if not d.carry]
        wanted = [d for d in stateless if not self.names or d.name.lower() in self.names]
        raw = RAW in _words(self.text) or any(RAW in words_in(d.sql) for d in wanted)
        return [d for d in stateless if raw or RAW not in words_in(d.sql)], raw


class Questions:
    """Answers ad-hoc SQL about a project."""

    def __init__(self, project: Project, store: SqliteStore) -> None:
        self.project, self.store, self.layout = project, store, Layout.of(project)
        query = project.settings.query
        set_memory(query.engine_memory)
        self.reader = Reader(
            store.db,
            rows_max=query.rows_max,
            seconds_max=query.seconds_max,
            kept_rows_max=query.kept_rows_max,
        )
        self.running = Running()
        self.pool = QueryPool(project.settings.spark, query, self.layout.work("query"))

    def answer(
        self, text: str, limit: int | None = None, id: str | None = None, caller: Caller = OWNER
    ) -> Answer:
        """Answer a query, which the caller can stop by its id from another thread."""
        with self.running.entered(id, caller.user) as stopping:
            names, plan = self.readable(text, caller)
            if self.reader.answers_about(names):
                with QUERY_SECONDS.labels(STORE).time():
                    return self.reader.sql(text, limit, stopping, partial(reads, caller, plan))
            asked = _Asked(text, names, _deployed(plan), caller)
            with QUERY_SECONDS.labels(SPARK).time():
                return self._on_spark(asked, limit, stopping)

    def plan(self, text: str, caller: Caller = OWNER) -> QueryPlan:
        """How a query would be answered."""
        names, plan = self.readable(text, caller)
        if self.reader.answers_about(names):
            relations, sql, steps = self.reader.plan(text, partial(reads, caller, plan))
            return QueryPlan("store", list(relations), sql, steps)
        asked = _Asked(text, names, _deployed(plan), caller)
        result, _ = self._asked(asked, Cancellation(), explain=True)
        return QueryPlan("spark", sorted(names), text, str(result.rows[0][0]))

    def cancel(self, id: str, caller: Caller = OWNER) -> bool:
        """Stop the caller's query of this id, or anybody's for one who manages users."""
        everybody = caller.allows(Operation.MANAGE, caller.whole_job)
        return self.running.stop(id, None if everybody else caller.user)

    def readable(self, text: str, caller: Caller) -> tuple[set[str], Plan | None]:
        """The names that a query speaks of, each of which the caller may read."""
        names = _names(text, self.project.settings.query.text_max)
        plan = self.store.deployed()
        check_reads(caller, plan, names)
        return names, plan

    def close(self) -> None:
        self.pool.close()

    # Streams and tables, on Spark

    def _on_spark(self, asked: _Asked, limit: int | None, stopping: Cancellation) -> Answer:
        result, known = self._asked(asked, stopping)
        columns = {column.name: ColumnInfo(column.type, True) for column in result.columns}
        rows = [dict(zip(columns, row, strict=True)) for row in result.rows]
        cut = limit is not None and len(rows) > limit
        return Answer(rows[:limit], known, columns, result.truncated and not cut)

    def _asked(
        self, asked: _Asked, stopping: Cancellation, *, explain: bool = False
    ) -> tuple[QueryResult, dict[str, AsOf]]:
        """What Spark says, and what each stream and view speaks for."""
        plan, caller = asked.plan, asked.caller
        _refuse_carried(plan, asked.names)
        with tempfile.TemporaryDirectory(dir=self._scratch()) as folder:
            sql, moments = _in_our_words(asked.text)
            check_reads(caller, plan, {name for name, _, _ in moments.values()})
            relations, positions = self._relations(asked, moments, Path(folder))
            views, known = self._views(asked, Path(folder))
            known |= {n: _as_of(at) for n, at in positions.items() if n.lower() in asked.names}
            relations = [*relations, *views]
            relations = [_seen_by(caller, plan, relation) for relation in relations]
            functions = self.project.functions_file
            path = str(functions) if functions else None
            request = QueryRequest(sql, relations, path, explain)
            return self.pool.run(request, stopping, caller.user), known

    def _views(self, asked: _Asked, folder: Path) -> tuple[list[Relation], dict[str, AsOf]]:
        """The views beside streams: their answers as files, each of one commit, and what each
        speaks for.
        """
        relations, known = list[Relation](), dict[str, AsOf]()
        for view in [v.name for v in asked.plan.views if v.name.lower() in asked.names]:
            table, columns, streams = self.reader.table(view)
            path = folder / f"view{len(relations)}.arrow"
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
            ddl = ", ".join(f"`{c.name}` {_SPARK.get(c.type, c.type)}" for c in columns)
            relations.append(Relation(view, kind="arrow_file", paths=[str(path)], schema_ddl=ddl))
            known |= {f"{view} ({stream})": of for stream, of in streams.items()}
        return relations, known

    def _scratch(self) -> Path:
        path = self.layout.work("query")
        path.mkdir(parents=True, exist_ok=True)
        return path

    def _relations(
        self, asked: _Asked, moments: dict[str, tuple[str, str, str]], folder: Path
    ) -> tuple[list[Relation], dict[str, Position]]:
        relations: list[Relation] = []
        positions: dict[str, Position] = {}
        plan, derived, raw = asked.plan, *asked.derived()
        for stream in plan.streams:
            made, positions[stream.name] = stream_relations(
                self.layout, stream, folder, raw=raw and stream.format == "json"
            )
            relations += made
        relations += [table_relation(table, self.project.folder) for table in plan.shown_tables]
        relations += [Relation(each.name, query=each.sql) for each in derived]
        known = {stream.name.lower(): stream for stream in plan.streams}
        for alias, (name, kind, value) in moments.items():
            # The name goes into SQL that is ours, so it must be one that the project gave.
            found = known.get(name.lower())
            if found is None:
                raise BadQuery(f"AS OF is for streams, and '{name}' is none")
            query = _as_of_query(found.name, kind, value, found.partitions)
            relations.append(Relation(alias, query=query))
        return relations, positions


def _deployed(plan: Plan | None) -> Plan:
    if plan is None:
        raise NotReady("nothing is deployed yet", hint="start the project with `headrace run`.")
    return plan


def _seen_by(caller: Caller, plan: Plan, relation: Relation) -> Relation:
    """What the caller may not read is there for other relations only."""
    if relation.name.startswith(_MOMENT) or reads(caller, plan, relation.name):
        return relation
    return msgspec.structs.replace(relation, hidden=True)


def _as_of(position: Position) -> AsOf:
    return AsOf(0, [], list(position.offsets), None, None, None)


def _refuse_carried(plan: Plan, names: set[str]) -> None:
    """The rows of a carried stream are made by a fold, which only views have."""
    carried = [derived.name for derived in plan.derived if derived.carry]
    if asked := [name for name in carried if name.lower() in names]:
        raise BadQuery(
            f"stream '{asked[0]}' is carried from event to event, and only views read it",
            hint="ask a view over it, or use OVER on the stream that it reads.",
        )


def _names(text: str, text_max: int) -> set[str]:
    """The relations a query speaks of, as far as its structure can be read here.

    This only chooses who answers, and lets a refusal name what is refused: whatever is not plainly
    about views goes to the fence.
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


def _words(text: str) -> frozenset[str]:
    """The words of a query; none if they cannot be told, which the fence will say."""
    try:
        return words_in(text)
    except HeadraceError:
        return frozenset()


def _in_our_words(text: str) -> tuple[str, dict[str, tuple[str, str, str]]]:
    """The query with each `name … AS OF value` replaced by a relation of its own, and with casts
    from a VARIANT that do not fail."""
    if " as of " not in " ".join(text.lower().split()) and ":" not in text:
        return text, {}
    try:
        trees = Verbatim().parse(text.strip().rstrip(";"))
    except Exception:
        return text, {}
    # What is left as it is meets the fence, which lets no AS OF and no second statement through.
    if len(trees) != 1 or trees[0] is None:
        return text, {}
    tree = trees[0]
    found = _without_time_travel(tree)
    again = found or tree.find(exp.JSONExtract)
    return (tree.sql(dialect=Headrace) if again else text), found


def _without_time_travel(tree: exp.Expr) -> dict[str, tuple[str, str, str]]:
    """Replace each `name … AS OF value`; what was replaced, by the name that is there now."""
    found: dict[str, tuple[str, str, str]] = {}
    for table in tree.find_all(exp.Table):
        version = table.args.get("version")
        if version is None or version.expression is None or table.db:
            continue
        alias = f"{_MOMENT}{len(found)}"
        found[alias] = table.name, version.name.upper(), version.expression.name
        table.set("version", None)
        shown = table.alias_or_name
        table.set("this", exp.to_identifier(alias))
        table.set("alias", exp.TableAlias(this=exp.to_identifier(shown)))
    return found


def _as_of_query(name: str, kind: str, value: str, partitions: int) -> str:
    if kind == "TIMESTAMP":
        try:
            moment = iso(from_iso(value))
        except ValueError as error:
            raise BadQuery(f"'{value}' is not a moment such as '2026-11-15T19:00:00Z'") from error
        return f"SELECT * FROM `{name}` WHERE {ARRIVED_AT} <= TIMESTAMP '{moment}'"
    offsets = parse_position(value, name, partitions).offsets
    conditions = [
        f"({PARTITION} = {n} AND {OFFSET} < {offset})" for n, offset in enumerate(offsets)
    ]
    return f"SELECT * FROM `{name}` WHERE {' OR '.join(conditions)}"
