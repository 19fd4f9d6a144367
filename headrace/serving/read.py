"""Reading: a view by its keys, or SQL over views. No Spark is needed.

Conditions on keys go inside, to the indexes of both tables, before anything is merged. A read has
a limit of rows and of time. tests/serving/test_read.py compares both ways with each other and
with the reference interpreter.
"""

from __future__ import annotations

import difflib
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
from sqlglot import exp

from headrace.compile.plan import ViewPlan
from headrace.compile.translate import Relations, Result, Translated, translate, typed_name
from headrace.core.errors import BadQuery, LimitReached, NotFound, NotReady
from headrace.core.origin import Origin
from headrace.core.stopping import Stopping
from headrace.core.time import Clock, now_us
from headrace.define.dialect import parse_translatable
from headrace.serving.answer import Answer, as_of, column_info, rows_as_objects
from headrace.serving.carried import set_aside, unfit
from headrace.serving.catalog import provisional, read_plan, read_tables, tables_of
from headrace.serving.conditions import Condition, Keys, asked, inside, pushed, span
from headrace.serving.empty import windows_of
from headrace.serving.finish import quoted, typed_sql
from headrace.serving.late import LateAnswer, late_answer, late_plan, newest_first
from headrace.serving.order import ordered
from headrace.serving.progress import read_stream
from headrace.serving.sqlite import Sqlite

ROWS_MAX = 10_000
NEVER = Stopping()  # for what nobody stops
Readable = Callable[[str], bool]  # whether a view may be read


def everything(view: str) -> bool:
    return True


class Reader:
    """Answers questions about views from the store."""

    def __init__(
        self,
        db: Sqlite,
        *,
        rows_max: int = ROWS_MAX,
        seconds_max: float = 30.0,
        clock: Clock = now_us,
    ) -> None:
        self.db, self.rows_max, self.seconds_max, self.clock = db, rows_max, seconds_max, clock

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
            plan = _live_plan(db, name)
            results = tuple(
                Result(out.name, out.type, out.estimate, out.keyed) for out in plan.outputs
            )
            sql, values = view_sql(plan, asked(plan, keys or {}, since, until))
            answer = self._answer(
                db,
                ordered(plan, sql, order) if order else sql,
                values,
                results,
                limit,
                fresh_column=True,
                counted=order is not None,
                views=(plan.name,),
            )
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
            plan = late_plan(_live_plan(db, name))
            results = tuple(Result(out.name, out.type, None) for out in plan.outputs)
            sql, values = view_sql(plan, asked(plan, keys or {}, since, until))
            answer = self._answer(
                db,
                ordered(plan, sql, newest_first(plan)),
                values,
                results,
                limit,
                fresh_column=True,
                counted=True,
                views=(plan.name,),
            )
            return late_answer(plan.name, answer)

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
            translated, sql, values = _asked_in_sql(db, text, readable)
            return self._answer(
                db,
                sql,
                values,
                translated.results,
                limit,
                fresh_column=False,
                views=translated.relations,
                stopping=stopping or NEVER,
            )

    def plan(self, text: str, readable: Readable = everything) -> tuple[tuple[str, ...], str, str]:
        """What a SELECT reads, its SQL for the store, and the store's plan of it."""
        with self.db.read() as db:
            translated, sql, values = _asked_in_sql(db, text, readable)
            rows = db.execute(f"EXPLAIN QUERY PLAN {sql}", values).fetchall()
            return translated.relations, sql, _indented(rows)

    def views(self) -> set[str]:
        """The names that `sql` can answer about."""
        with self.db.read() as db:
            plan = read_plan(db)
            return {view.name.lower() for view in plan.views} if plan else set()

    def _answer(
        self,
        db: sqlite3.Connection,
        sql: str,
        values: list[Any],
        results: tuple[Result, ...],
        limit: int | None,
        *,
        fresh_column: bool,
        views: tuple[str, ...],
        counted: bool = False,
        stopping: Stopping = NEVER,
    ) -> Answer:
        """With `counted`, each row begins with the number of all."""
        wanted = min(limit if limit is not None else self.rows_max, self.rows_max)
        raw = self._run(db, f"SELECT * FROM ({sql}) LIMIT {wanted + 1}", values, stopping)
        total = (raw[0][0] if raw else 0) if counted else None
        raw = [row[1:] for row in raw] if counted else raw
        streams = _streams_of(db, views)
        states = [read_stream(db, stream) for stream in streams]
        fresh = (
            any(row[-1] for row in raw)
            if fresh_column
            else any(s.reached != s.built for s in states)
        )
        rows, aside = rows_as_objects(raw[:wanted], results), _set_aside(db, views)
        partial = bool(aside) or any(state.shed for state in states)
        return Answer(
            rows,
            as_of(states, self.clock(), _provisional(db, views), _tables(db, views), aside),
            column_info(results, rows, fresh, partial),
            truncated=len(raw) > wanted and (limit is None or limit > wanted),
            total=total,
        )

    def _run(
        self, db: sqlite3.Connection, sql: str, values: list[Any], stopping: Stopping
    ) -> list[Any]:
        deadline = time.monotonic() + self.seconds_max
        # SQLite asks this every few steps and interrupts itself when it is true.
        db.set_progress_handler(lambda: stopping.stopped or time.monotonic() > deadline, 10_000)
        try:
            stopping.check()
            return db.execute(sql, values).fetchall()
        except sqlite3.OperationalError as error:
            if "interrupted" in str(error):
                stopping.check()
                raise LimitReached(
                    f"the query took longer than {self.seconds_max:g} s",
                    hint="ask for fewer rows, or raise query.seconds_max.",
                ) from error
            raise BadQuery(f"the query cannot be answered: {error}") from error


def _asked_in_sql(
    db: sqlite3.Connection, text: str, readable: Readable
) -> tuple[Translated, str, list[Any]]:
    """A SELECT over readable views in the store's SQL, with its values."""
    relations = {name: outputs for name, outputs in _relations(db).items() if readable(name)}
    translated = translate(_parsed(text), relations)
    for name in translated.relations:
        _live_plan(db, name)
    sql, values = translated.tree.sql(dialect="sqlite"), list[Any]()
    if len(translated.relations) == 1 and not translated.tree.args.get("joins"):
        sql, values = pushed(translated, _live_plan(db, translated.relations[0]))
    return translated, sql, values


def _indented(steps: list[Any]) -> str:
    """The steps of a plan of SQLite's, each below the one that it is a part of."""
    depth, lines = {0: 0}, []
    for id, parent, _, words in steps:
        depth[id] = depth.get(parent, 0) + 1
        lines.append("  " * (depth[id] - 1) + words)
    return "\n".join(lines)


def view_sql(plan: ViewPlan, conditions: list[Condition]) -> tuple[str, list[Any]]:
    """SELECT of a view's rows that meet the conditions, and its values."""
    values: list[Any] = []
    if plan.kept and plan.limit is None:
        where, values = inside(plan, conditions)
        sql = typed_sql(plan, *tables_of(plan)[:2], where=where, span=span(plan, conditions))
        # The conditions stand in both arms of the union.
        values = values * 2
        conditions = conditions if plan.regroups else []
    else:
        # A limit has decided on the view's rows before a key asks for some of them.
        fresh = "" if plan.kept else ", 1 AS _fresh"
        sql = f"SELECT *{fresh} FROM {quoted(typed_name(plan.name))}"
    if conditions:
        sql = f"SELECT * FROM ({sql}) WHERE {' AND '.join(c.outside for c in conditions)}"
    return sql, values + [condition.value for condition in conditions]


def _live_plan(db: sqlite3.Connection, name: str) -> ViewPlan:
    plan = read_plan(db)
    view = plan.view(name) if plan else None
    if view is None or plan is None:
        names = [v.name for v in plan.shown_views] if plan else []
        close = difflib.get_close_matches(name, names, 1)
        hint = (
            f"did you mean '{close[0]}'?" if close else f"there are: {', '.join(names) or 'none'}."
        )
        raise NotFound(f"there is no view '{name}'", hint=hint)
    if view.kind == "read":
        for source in view.reads:
            _live_plan(db, source)
        return view
    row = db.execute(
        "SELECT plan FROM _views WHERE name = ? AND state = 'live'", (view.name,)
    ).fetchone()
    if row is None:
        raise NotReady(
            f"view '{view.name}' is being built for the first time", hint="try again in a moment."
        )
    return msgspec.json.decode(row[0], type=ViewPlan)


def _streams_of(db: sqlite3.Connection, views: tuple[str, ...]) -> list[str]:
    plan = read_plan(db)
    found: dict[str, None] = {}
    for name in views:
        view = plan.view(name) if plan else None
        if view is not None:
            names = [view.stream] if view.stream else _streams_of(db, view.reads)
            found |= dict.fromkeys(names)
    return list(found)


def _tables(db: sqlite3.Connection, views: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """The versions of the tables that those views join each stream with."""
    plan, known = read_plan(db), read_tables(db)
    found: dict[str, dict[str, str]] = {}
    for view in filter(None, (plan.view(name) if plan else None for name in views)):
        for stream, versions in _tables(db, view.reads).items():
            found.setdefault(stream, {}).update(versions)
        used = {name: known[name][0] for name in view.tables if name in known}
        found.setdefault(view.stream, {}).update(used)
    return found


def _provisional(db: sqlite3.Connection, views: tuple[str, ...]) -> set[str]:
    """The streams of those views whose answers are provisional."""
    plan = read_plan(db)
    found: set[str] = set()
    for view in filter(None, (plan.view(name) if plan else None for name in views)):
        if view.kind == "read":
            found |= _provisional(db, view.reads)
        elif _is_provisional(db, _live_plan(db, view.name)):
            found.add(view.stream)
    return found


def _set_aside(db: sqlite3.Connection, views: tuple[str, ...]) -> dict[str, int]:
    """How many keys of those views' patterns are not searched, by stream."""
    plan, found = read_plan(db), Counter[str]()
    for view in filter(None, (plan.view(name) if plan else None for name in views)):
        if view.kind == "read":
            found.update(_set_aside(db, view.reads))
        elif keys := set_aside(db, _live_plan(db, view.name)):
            found[view.stream] += len(keys)
    return dict(found)


def _is_provisional(db: sqlite3.Connection, plan: ViewPlan) -> bool:
    return bool(provisional(db, plan.recompute)) or unfit(db, plan.recompute)


def _relations(db: sqlite3.Connection) -> Relations:
    plan = read_plan(db)
    if plan is None:
        raise NotReady("nothing is deployed yet", hint="start the project with `headrace run`.")
    return {view.name: view.outputs for view in plan.views}


def _parsed(text: str) -> exp.Query:
    try:
        return parse_translatable(text.strip().rstrip(";"), Origin("query", 1))
    except Exception as error:
        message = getattr(error, "message", str(error))
        raise BadQuery(message, origin=getattr(error, "origin", None)) from error
