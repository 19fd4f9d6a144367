"""Reading: a view by its keys, or SQL over views. No Spark is needed.

The store gives merged rows (serving/merged_rows.py) and the reading engine finishes them and runs
the query (serving/engine.py), all of one snapshot of the store. A read is limited in rows and time.
tests/serving/test_read.py compares the ways to read with each other and with the reference
interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
from sqlglot import exp

from headrace.certified.function_table import offered_at
from headrace.certified.relation import AnswerColumn
from headrace.certified.select import CompiledQuery, compile_query
from headrace.compile.plan import ViewPlan
from headrace.core.cancellation import Cancellation
from headrace.core.errors import BadQuery
from headrace.core.origin import Origin
from headrace.core.time import Clock, now_us
from headrace.define.dialect import parse_read
from headrace.serving.answer import Answer, AsOf, column_info, rows_as_objects
from headrace.serving.catalog import read_plan
from headrace.serving.conditions import Condition, Keys, key_conditions, key_of, parse_conditions
from headrace.serving.database import Database, Transaction
from headrace.serving.engine import NEVER, run
from headrace.serving.finish import cached_relation, filter_rows, rows_name, windows_of
from headrace.serving.late import LateAnswer, late_answer, late_plan, newest_first
from headrace.serving.merged_rows import storage_columns, storage_rows
from headrace.serving.order import order_by
from headrace.serving.read_model import StaleSnapshot, model_of
from headrace.serving.snapshot import NotCached
from headrace.serving.value_types import value_type
from headrace.serving.views import Readable, Views, all_readable

ROWS_MAX = 10_000
Row = tuple[Any, ...]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _ViewQuery:
    """The rows to read of a version of a view."""

    plan: ViewPlan
    conditions: list[Condition]
    limit: int | None = None
    order: str | None = None


class Reader:
    """Reads views and runs queries over them."""

    def __init__(
        self,
        db: Database,
        *,
        rows_max: int = ROWS_MAX,
        seconds_max: float = 30.0,
        kept_rows_max: int | None = None,
        clock: Clock = now_us,
    ) -> None:
        self.db, self.rows_max, self.seconds_max, self.clock = db, rows_max, seconds_max, clock
        self.model = model_of(db.changes)
        if kept_rows_max is not None:
            self.model.rows_max = kept_rows_max

    def view(
        self,
        name: str,
        keys: Keys | None = None,
        *,
        since: str | None = None,
        until: str | None = None,
        limit: int | None = None,
        order: str | None = None,
    ) -> Answer:
        """Rows of a view with these key values, and with windows that start in [since, until).
        With an order, such as "-hits", the first of all rows, and how many there are.
        """

        def read(views: Views) -> Answer:
            plan = views.live(name)
            conditions = parse_conditions(plan, keys or {}, since, until)
            return self._answer_with_windows(views, _ViewQuery(plan, conditions, limit, order))

        return self._read(read)

    def row(self, name: str, keys: Keys) -> Answer | None:
        """The row of one key from the published rows: without the store, a query or waiting. None
        if that is not possible.
        """
        if not (published := self.model.published()):
            return None
        views = Views(published.snapshot, model=self.model, published=published)
        try:
            plan = views.live(name)
            conditions = parse_conditions(plan, keys, None, None)
            if key_of(plan, conditions) is None or not (plan.kept and plan.rowwise):
                return None
            return self._answer_with_windows(views, _ViewQuery(plan, conditions))
        except NotCached:
            return None

    def late(
        self,
        name: str,
        keys: Keys | None = None,
        *,
        since: str | None = None,
        until: str | None = None,
        limit: int | None = None,
    ) -> LateAnswer:
        """How late the events of a view's windows were; parameters as of `view`."""
        with self.db.read() as db:
            views = Views.of(db)
            plan = late_plan(views.live(name))
            conditions = parse_conditions(plan, keys or {}, since, until)
            query = _ViewQuery(plan, conditions, limit, newest_first(plan))
            return late_answer(plan.name, self._view_answer(views, query))

    def sql(
        self,
        text: str,
        limit: int | None = None,
        cancellation: Cancellation | None = None,
        readable: Readable = all_readable,
    ) -> Answer:
        """An ad-hoc SELECT over views, which `cancellation` may stop from another thread; views
        that are not `readable` are unknown to it.
        """
        query = _parsed(text)

        def read(views: Views) -> Answer:
            made = _compiled(query, views, self.clock())
            rows_max = self._limit(limit)
            sql = f"SELECT * FROM ({made.sql}) LIMIT {rows_max + 1}"
            table = run(sql, views.tables, self.seconds_max, cancellation or NEVER)
            rows = storage_rows(table, [column.type for column in made.columns])
            return self._answer(views, rows, made.columns, made.relations, limit)

        return self._read(read, readable)

    def plan(
        self, text: str, readable: Readable = all_readable
    ) -> tuple[tuple[str, ...], str, str]:
        """What a SELECT reads, its SQL for the reading engine, and the engine's plan of it."""
        query = _parsed(text)

        def read(views: Views) -> tuple[tuple[str, ...], str, str]:
            made = _compiled(query, views, self.clock())
            steps = run(f"EXPLAIN {made.sql}", views.tables, self.seconds_max)
            return made.relations, made.sql, "\n".join(steps.column(1).to_pylist())

        return self._read(read, readable)

    def table(self, name: str) -> tuple[pa.Table, tuple[AnswerColumn, ...], dict[str, AsOf]]:
        """All rows of a view as a table, with windows as structs, its columns, and its `as_of`."""

        def read(views: Views) -> tuple[pa.Table, tuple[AnswerColumn, ...], dict[str, AsOf]]:
            plan = views.live(name)
            relation = views.relation(plan)
            table = run(f"SELECT * FROM {relation.sql}", views.tables, self.seconds_max)
            schema = pa.schema([(c.name, value_type(c.type).arrow) for c in relation.columns])
            known = views.progress((plan.name,)).as_of(self.clock())
            return table.cast(schema), relation.columns, known

        return self._read(read)

    def _read(self, read: Callable[[Views], T], readable: Readable = all_readable) -> T:
        """Read from the published rows if they have all that is needed, else from a snapshot of the
        store.
        """
        if published := self.model.published():
            try:
                snapshot = published.snapshot
                return read(Views(snapshot, None, readable, self.model, published))
            except NotCached:
                pass
        while True:
            try:
                with self.db.read() as db:
                    return read(Views.of(db, readable, self.model))
            except StaleSnapshot:
                continue  # another reader has updated the cached rows beyond the snapshot

    def answers_about(self, names: set[str]) -> bool:
        """Whether `sql` can answer a query over these names: at least one view, and tables."""
        with self.db.read() as db:
            plan = read_plan(db)
        if plan is None:
            return False
        views = {view.name.lower() for view in plan.views}
        tables = {table.name.lower() for table in plan.tables}
        return bool(names & views) and names <= views | tables

    def _answer_with_windows(self, views: Views, query: _ViewQuery) -> Answer:
        answer = self._view_answer(views, query)
        return msgspec.structs.replace(answer, windows=windows_of(query.plan))

    def _view_answer(self, views: Views, query: _ViewQuery) -> Answer:
        found = self._from_cache(views, query)
        columns, table, total = self._from_query(views, query) if found is None else found
        fresh = any(table.column(len(columns)).to_pylist())
        rows = storage_rows(table, [column.type for column in columns])
        answer = self._answer(views, rows, columns, (query.plan.name,), query.limit, fresh)
        return msgspec.structs.replace(answer, total=total) if query.order else answer

    def _from_cache(
        self, views: Views, query: _ViewQuery
    ) -> tuple[Sequence[AnswerColumn], pa.Table, int] | None:
        """Cached rows that are found by key or by comparing columns, which is cheaper than a query;
        None if a query is needed.
        """
        plan, conditions = query.plan, query.conditions
        key = key_of(plan, conditions)
        simple = key is not None or (not query.order and all(c.comparable for c in conditions))
        known = simple and plan.kept and plan.rowwise
        kept = views.rows(plan, selective=bool(conditions)) if known else None
        if kept is None:
            return None
        if key is not None:
            table = kept.find(key)
        else:
            table = filter_rows(plan, kept.whole, conditions).slice(0, self._limit(query.limit) + 1)
        views.tables[rows_name(plan)] = table
        return cached_relation(plan).columns, table, table.num_rows

    def _from_query(
        self, views: Views, query: _ViewQuery
    ) -> tuple[Sequence[AnswerColumn], pa.Table, int]:
        """The rows that meet the conditions, by a query, and how many there are."""
        plan, order = query.plan, query.order
        views.conditions = {plan.name.lower(): query.conditions}
        relation = views.with_freshness(plan)
        rows = f"SELECT * FROM {relation.sql}{_where(query.conditions)}"
        if order:
            rows = f"SELECT *, count(*) OVER () AS _total FROM ({rows}) {order_by(plan, order)}"
        sql = f"SELECT * FROM ({rows}) LIMIT {self._limit(query.limit) + 1}"
        columns, table = relation.columns[:-1], run(sql, views.tables, self.seconds_max)
        total = table.column(len(columns) + 1)[0].as_py() if order and table.num_rows else 0
        return columns, table, total

    def _limit(self, limit: int | None) -> int:
        return min(limit if limit is not None else self.rows_max, self.rows_max)

    def _answer(
        self,
        views: Views,
        raw: Sequence[Row],
        columns: Sequence[AnswerColumn],
        names: tuple[str, ...],
        limit: int | None,
        fresh: bool | None = None,
    ) -> Answer:
        """The answer of rows, of which there may be one more than the limit. `fresh` says whether
        speed contributed to them; by default, whether speed is ahead of batch.
        """
        rows_max, progress = self._limit(limit), views.progress(names)
        known = progress.as_of(self.clock())
        rows = rows_as_objects(raw[:rows_max], columns)
        partial = any(stream.set_aside or stream.sampled for stream in known.values())
        fresh = progress.fresh if fresh is None else fresh
        return Answer(
            rows,
            known,
            column_info(columns, views.cut(), fresh, partial),
            truncated=len(raw) > rows_max and (limit is None or limit > rows_max),
        )


@dataclass(frozen=True, slots=True)
class ViewRows:
    """Rows of a version of a view, the last column of which says whether speed contributed."""

    table: pa.Table
    types: tuple[str, ...]

    @property
    def columns(self) -> list[pa.ChunkedArray]:
        """In storage form, but for lists and objects."""
        return [column for _, column in storage_columns(self.table, self.types)]

    def rows(self, numbers: pa.Array | None = None) -> list[Row]:
        """All rows in storage form, or those with these numbers."""
        some = self.table if numbers is None else self.table.take(numbers)
        return storage_rows(some, self.types)


def read_view_rows(
    db: Transaction, plan: ViewPlan, conditions: Sequence[Condition] = (), *, cached: bool = False
) -> list[Row]:
    """All rows of a version of a view that meet the conditions, in storage form; with `cached`,
    from the cache. An audit reads the store.
    """
    return read_view_columns(db, plan, conditions, cached=cached).rows()


def read_view_columns(
    db: Transaction, plan: ViewPlan, conditions: Sequence[Condition] = (), *, cached: bool = False
) -> ViewRows:
    """The same rows in columns, of which only some may be needed as rows."""
    views = Views.of(db, model=model_of(db.changes) if cached else None)
    views.conditions, views.retries = {plan.name.lower(): conditions}, False
    sql = f"SELECT * FROM {views.with_freshness(plan).sql}{_where(conditions)}"
    types = (*(output.type for output in plan.outputs), "BOOLEAN")
    return ViewRows(run(sql, views.tables), types)


def _where(conditions: Sequence[Condition]) -> str:
    return " WHERE " + " AND ".join(c.sql for c in conditions) if conditions else ""


def _compiled(query: exp.Query, views: Views, now_us: int) -> CompiledQuery:
    """A SELECT over views for the reading engine."""
    tables = list(query.find_all(exp.Table))
    view = views.plan.view(tables[0].name) if len(tables) == 1 else None
    if view is not None and isinstance(query, exp.Select) and tables[0].parent_select is query:
        views.conditions = {view.name.lower(): key_conditions(query, view)}
    made = compile_query(query, views.find, views.names, functions=offered_at(now_us))
    names = tuple(found.name for name in made.relations if (found := views.plan.view(name)))
    return CompiledQuery(made.sql, made.columns, names)


def _parsed(text: str) -> exp.Query:
    try:
        return parse_read(text.strip().rstrip(";"), Origin("query", 1))
    except Exception as error:
        message = getattr(error, "message", str(error))
        raise BadQuery(message, origin=getattr(error, "origin", None)) from error
