"""Reading: a view by its keys, or SQL over views. No Spark is needed.

The store gives merged rows (serving/merged.py) and the reading engine finishes them and answers
(serving/engine.py), all of one snapshot of the store. A read has a limit of rows and of time.
tests/serving/test_read.py compares the ways of asking with each other and with the reference
interpreter.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import msgspec
import pyarrow as pa
from sqlglot import exp

from headrace.certified.relation import AnswerColumn
from headrace.certified.select import Compiled, compile_query
from headrace.compile.plan import ViewPlan
from headrace.core.errors import BadQuery
from headrace.core.origin import Origin
from headrace.core.stopping import Stopping
from headrace.core.time import Clock, now_us
from headrace.define.dialect import parse_read
from headrace.serving.answer import Answer, AsOf, as_of, column_info, rows_as_objects
from headrace.serving.carried import set_aside, unfit
from headrace.serving.catalog import provisional, read_plan, read_tables
from headrace.serving.conditions import Condition, Keys, asked, narrowing
from headrace.serving.database import Database, Transaction
from headrace.serving.empty import windows_of
from headrace.serving.engine import NEVER, run
from headrace.serving.kinds import kind_of
from headrace.serving.late import LateAnswer, late_answer, late_plan, newest_first
from headrace.serving.merged import stored
from headrace.serving.order import order_by
from headrace.serving.progress import read_stream
from headrace.serving.read_model import Moved, ReadModel, model_of
from headrace.serving.views import Readable, Views, everything, live_plan

ROWS_MAX = 10_000
Row = tuple[Any, ...]


Question = TypeVar("Question", bound=Callable[..., Any])


def _in_one_snapshot(question: Question) -> Question:
    """Ask again where another reader has brought the kept rows past the snapshot meanwhile."""

    @functools.wraps(question)
    def ask(*said: Any, **named: Any) -> Any:
        while True:
            try:
                return question(*said, **named)
            except Moved:
                continue

    return cast(Question, ask)


class Reader:
    """Answers questions about views from the store."""

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

    @_in_one_snapshot
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
        """Rows of a view with these key values, and with windows that begin in [since, until).
        In an order, such as "-hits", they are the first of all rows, which are counted.
        """
        with self.db.read() as db:
            views = Views.of(db, model=self.model)
            plan = live_plan(db, views.plan, name)
            conditions = asked(plan, keys or {}, since, until)
            answer = self._of_view(views, plan, conditions, limit, order)
            return msgspec.structs.replace(answer, windows=windows_of(db, plan))

    def late(
        self,
        name: str,
        keys: Keys | None = None,
        *,
        since: str | None = None,
        until: str | None = None,
        limit: int | None = None,
    ) -> LateAnswer:
        """How late the events of a view's windows were; asked like `view`."""
        with self.db.read() as db:
            views = Views.of(db)
            plan = late_plan(live_plan(db, views.plan, name))
            conditions = asked(plan, keys or {}, since, until)
            answer = self._of_view(views, plan, conditions, limit, newest_first(plan))
            return late_answer(plan.name, answer)

    @_in_one_snapshot
    def sql(
        self,
        text: str,
        limit: int | None = None,
        stopping: Stopping | None = None,
        readable: Readable = everything,
    ) -> Answer:
        """An ad-hoc SELECT over views, which `stopping` may end from another thread; views that are
        not readable are not there.
        """
        with self.db.read() as db:
            views, made = _asked_in_sql(db, text, readable, self.model)
            wanted = self._wanted(limit)
            sql = f"SELECT * FROM ({made.sql}) LIMIT {wanted + 1}"
            table = run(sql, views.tables, self.seconds_max, stopping or NEVER)
            rows = stored(table, [column.type for column in made.columns])
            states = [read_stream(db, name) for name in _streams_of(db, made.relations)]
            fresh = any(state.reached != state.built for state in states)
            return self._answer(views, rows, made.columns, made.relations, limit, fresh)

    @_in_one_snapshot
    def plan(self, text: str, readable: Readable = everything) -> tuple[tuple[str, ...], str, str]:
        """What a SELECT reads, its SQL for the reading engine, and the engine's plan of it."""
        with self.db.read() as db:
            views, made = _asked_in_sql(db, text, readable, self.model)
            steps = run(f"EXPLAIN {made.sql}", views.tables, self.seconds_max)
            return made.relations, made.sql, "\n".join(steps.column(1).to_pylist())

    @_in_one_snapshot
    def table(self, name: str) -> tuple[pa.Table, tuple[AnswerColumn, ...], dict[str, AsOf]]:
        """All rows of a view as a table, with windows as structs, its columns, and what its rows
        speak for.
        """
        with self.db.read() as db:
            views = Views.of(db, model=self.model)
            plan = live_plan(db, views.plan, name)
            relation = views.relation(plan)
            table = run(f"SELECT * FROM {relation.sql}", views.tables, self.seconds_max)
            schema = pa.schema([(c.name, kind_of(c.type).arrow) for c in relation.columns])
            return table.cast(schema), relation.columns, self._as_of(db, (plan.name,))

    def answers_about(self, names: set[str]) -> bool:
        """Whether `sql` can answer a query over these: views, and tables beside them."""
        with self.db.read() as db:
            plan = read_plan(db)
        if plan is None:
            return False
        views = {view.name.lower() for view in plan.views}
        tables = {table.name.lower() for table in plan.tables}
        return bool(names & views) and names <= views | tables

    def _of_view(
        self,
        views: Views,
        plan: ViewPlan,
        conditions: list[Condition],
        limit: int | None,
        order: str | None,
    ) -> Answer:
        views.narrowed = {plan.name.lower(): conditions}
        relation = views.with_freshness(plan)
        rows = f"SELECT * FROM {relation.sql}{_where(conditions)}"
        if order:
            rows = f"SELECT *, count(*) OVER () AS _total FROM ({rows}) {order_by(plan, order)}"
        sql = f"SELECT * FROM ({rows}) LIMIT {self._wanted(limit) + 1}"
        columns, table = relation.columns[:-1], run(sql, views.tables, self.seconds_max)
        fresh = any(table.column(len(columns)).to_pylist())
        found = stored(table, [column.type for column in columns])
        answer = self._answer(views, found, columns, (plan.name,), limit, fresh)
        if not order:
            return answer
        total = table.column(len(columns) + 1)[0].as_py() if table.num_rows else 0
        return msgspec.structs.replace(answer, total=total)

    def _wanted(self, limit: int | None) -> int:
        return min(limit if limit is not None else self.rows_max, self.rows_max)

    def _answer(
        self,
        views: Views,
        raw: Sequence[Row],
        columns: Sequence[AnswerColumn],
        names: tuple[str, ...],
        limit: int | None,
        fresh: bool,
    ) -> Answer:
        """Rows, of which there may be one more than wanted, with what they speak for."""
        wanted, known = self._wanted(limit), self._as_of(views.db, names)
        rows = rows_as_objects(raw[:wanted], columns)
        partial = any(stream.set_aside or stream.sampled for stream in known.values())
        return Answer(
            rows,
            known,
            column_info(columns, views.cut(), fresh, partial),
            truncated=len(raw) > wanted and (limit is None or limit > wanted),
        )

    def _as_of(self, db: Transaction, views: tuple[str, ...]) -> dict[str, AsOf]:
        states = [read_stream(db, stream) for stream in _streams_of(db, views)]
        parts = _provisional(db, views), _tables(db, views), _set_aside(db, views)
        return as_of(states, self.clock(), *parts)


def rows_of(
    db: Transaction,
    plan: ViewPlan,
    conditions: Sequence[Condition] = (),
    *,
    kept: bool = False,
) -> list[Row]:
    """All rows of a version of a view that meet the conditions, in storage form; with `kept`, from
    those in memory. An audit asks the store.
    """
    views = Views.of(db, model=model_of(db.changes) if kept else None)
    views.narrowed, views.again = {plan.name.lower(): conditions}, False
    sql = f"SELECT * FROM {views.with_freshness(plan).sql}{_where(conditions)}"
    types = [*(output.type for output in plan.outputs), "BOOLEAN"]
    return stored(run(sql, views.tables), types)


def _where(conditions: Sequence[Condition]) -> str:
    return " WHERE " + " AND ".join(c.outside for c in conditions) if conditions else ""


def _asked_in_sql(
    db: Transaction, text: str, readable: Readable, model: ReadModel
) -> tuple[Views, Compiled]:
    """The views behind a SELECT, and the SELECT for the reading engine."""
    query, views = _parsed(text), Views.of(db, readable, model)
    tables = list(query.find_all(exp.Table))
    view = views.plan.view(tables[0].name) if len(tables) == 1 else None
    if view is not None and isinstance(query, exp.Select) and tables[0].parent_select is query:
        views.narrowed = {view.name.lower(): narrowing(query, view)}
    made = compile_query(query, views.find, views.names)
    names = tuple(found.name for name in made.relations if (found := views.plan.view(name)))
    return views, Compiled(made.sql, made.columns, names)


def _streams_of(db: Transaction, views: tuple[str, ...]) -> list[str]:
    plan, found = Views.of(db).plan, dict[str, None]()
    for name in views:
        view = plan.view(name)
        if view is not None:
            names = [view.stream] if view.stream else _streams_of(db, view.reads)
            found |= dict.fromkeys(names)
    return list(found)


def _tables(db: Transaction, views: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """The versions of the tables that those views join each stream with."""
    plan, known = Views.of(db).plan, read_tables(db)
    found: dict[str, dict[str, str]] = {}
    for view in filter(None, map(plan.view, views)):
        for stream, versions in _tables(db, view.reads).items():
            found.setdefault(stream, {}).update(versions)
        used = {name: known[name][0] for name in view.tables if name in known}
        for stream in _streams_of(db, (view.name,)):
            found.setdefault(stream, {}).update(used)
    return found


def _provisional(db: Transaction, views: tuple[str, ...]) -> set[str]:
    """The streams of those views whose answers are provisional."""
    plan, found = Views.of(db).plan, set[str]()
    for view in filter(None, map(plan.view, views)):
        if view.kind == "read":
            found |= _provisional(db, view.reads)
        elif _is_provisional(db, live_plan(db, plan, view.name)):
            found.add(view.stream)
    return found


def _set_aside(db: Transaction, views: tuple[str, ...]) -> dict[str, int]:
    """How many keys of those views' patterns are not searched, by stream."""
    plan, found = Views.of(db).plan, Counter[str]()
    for view in filter(None, map(plan.view, views)):
        if view.kind == "read":
            found.update(_set_aside(db, view.reads))
        elif keys := set_aside(db, live_plan(db, plan, view.name)):
            found[view.stream] += len(keys)
    return dict(found)


def _is_provisional(db: Transaction, plan: ViewPlan) -> bool:
    return bool(provisional(db, plan.recompute)) or unfit(db, plan.recompute)


def _parsed(text: str) -> exp.Query:
    try:
        return parse_read(text.strip().rstrip(";"), Origin("query", 1))
    except Exception as error:
        message = getattr(error, "message", str(error))
        raise BadQuery(message, origin=getattr(error, "origin", None)) from error
