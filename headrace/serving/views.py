"""The views of one snapshot of the store, as relations of the reading engine.

A view that is kept is the finish of its merged rows, which are read from the store when the first
query names it; a view over views is its own SELECT over theirs.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from headrace.certified.relation import AnswerColumn, ReadRelation
from headrace.certified.select import Compiled, compile_query
from headrace.certified.typed import quoted
from headrace.compile.finish import answer_columns, compile_finish
from headrace.compile.plan import FRESH, OutputPlan, Plan, ViewPlan
from headrace.core.errors import NotFound, NotReady
from headrace.core.origin import Origin
from headrace.core.rule import ALERTS
from headrace.define.dialect import parse_read
from headrace.serving.catalog import read_plan, tables_of
from headrace.serving.conditions import Condition, inside, span
from headrace.serving.database import Transaction
from headrace.serving.ledger_rows import ledger_rows
from headrace.serving.merged import arrow, cut_column, merged_sql
from headrace.serving.read_model import Moved, ReadModel
from headrace.serving.table_rows import read_rows, relation_of

Readable = Callable[[str], bool]  # whether a view may be read


def everything(view: str) -> bool:
    return True


@dataclass(slots=True)
class Views:
    """Relations by name, and the tables behind those that were asked for."""

    db: Transaction
    plan: Plan
    readable: Readable = everything
    tables: dict[str, pa.Table] = field(default_factory=dict)
    # Conditions that hold for every row that is asked for of a view, by its name in lower case.
    narrowed: Mapping[str, Collection[Condition]] = field(default_factory=dict)
    model: ReadModel | None = None
    again: bool = True  # whether the caller can ask again in a newer snapshot

    @staticmethod
    def of(
        db: Transaction, readable: Readable = everything, model: ReadModel | None = None
    ) -> Views:
        plan = read_plan(db)
        if plan is None:
            raise NotReady("nothing is deployed yet", hint="start the project with `headrace run`.")
        return Views(db, plan, readable, model=model)

    @property
    def names(self) -> list[str]:
        return [view.name for view in self.plan.views if self.readable(view.name)]

    def find(self, name: str) -> ReadRelation | None:
        """A view or table that the caller may read."""
        return self._below(name) if self.readable(name) else None

    def _below(self, name: str) -> ReadRelation | None:
        """Also what a view is made of: who may read the view sees it through it."""
        if view := self.plan.view(name):
            return self.relation(view)
        table = next((t.name for t in self.plan.tables if t.name.lower() == name.lower()), None)
        if table is None:
            return None
        self.tables[table] = read_rows(self.db, table)
        return relation_of(table, self.tables[table])

    def relation(self, view: ViewPlan) -> ReadRelation:
        """A view's rows; of one that is kept, also whether speed took part in each."""
        if view.name == ALERTS and not view.reads:
            self.tables[ALERTS] = ledger_rows(self.db, view)
            return ReadRelation(quoted(ALERTS), answer_columns(view))
        if view.kind == "read":
            made = compile_query(parse_read(view.read_sql, Origin("plan", 1)), self._below)
            return ReadRelation(f"({made.sql})", _with_lists(view, made))
        return self.kept(live_plan(self.db, self.plan, view.name))

    def kept(self, live: ViewPlan) -> ReadRelation:
        """The rows of a version, finished."""
        name = f"merged_{live.recompute}"
        if name not in self.tables:
            self.tables[name] = self.merged(live)
        made = _finish(live, name)
        return ReadRelation(f"({made.sql})", _with_lists(live, made))

    def with_freshness(self, view: ViewPlan) -> ReadRelation:
        """A view's rows, each with whether speed took part in it; of a view over views that is not
        known of a row, so it is taken for granted.
        """
        if not view.kept:
            rows = self.relation(view)
            columns = (*rows.columns, AnswerColumn(FRESH, "BOOLEAN"))
            return ReadRelation(f"(SELECT *, true AS {FRESH} FROM {rows.sql})", columns)
        marked = OutputPlan(FRESH, "BOOLEAN", FRESH)
        return self.kept(msgspec.structs.replace(view, outputs=(*view.outputs, marked)))

    def cut(self) -> set[str]:
        """The collected lists, by table and column, of which one was cut in the rows that were
        read.
        """
        return {
            f"{name}.{column.removesuffix(cut_column(''))}"
            for name, table in self.tables.items()
            for column in table.column_names
            if column.endswith(cut_column("")) and pc.any(table.column(column)).as_py()
        }

    def merged(self, live: ViewPlan) -> pa.Table:
        # A limit decides on the view's rows before a condition asks for some of them.
        asked = self.narrowed.get(live.name.lower(), ()) if live.limit is None else ()
        kept = self._kept(live, narrowed=bool(asked))
        if kept is not None:
            return kept
        where, values = inside(live, asked)
        sql = merged_sql(live, *tables_of(live)[:2], where=where, span=span(live, asked))
        # The conditions stand in both arms of the union.
        table = arrow(live, self.db.execute(sql, values * 2))
        if self.model:
            self.model.found(live, table.num_rows)
        return table

    def _kept(self, live: ViewPlan, *, narrowed: bool) -> pa.Table | None:
        if self.model is None:
            return None
        try:
            return self.model.rows(self.db, live, narrowed=narrowed)
        except Moved:
            if self.again:
                raise
            return None


def _with_lists(view: ViewPlan, made: Compiled) -> tuple[AnswerColumn, ...]:
    """The columns of a view's answer, with the lists that they are made of."""
    pairs = zip(answer_columns(view), made.columns, strict=True)
    return tuple(replace(column, lists=found.lists) for column, found in pairs)


@lru_cache(maxsize=1_000)
def _finish(live: ViewPlan, table: str) -> Compiled:
    return compile_finish(live, table)


def live_plan(db: Transaction, plan: Plan, name: str) -> ViewPlan:
    """A view as it answers now."""
    view = plan.view(name)
    if view is None:
        names = [shown.name for shown in plan.shown_views]
        close = difflib.get_close_matches(name, names, 1)
        listed = f"there are: {', '.join(names) or 'none'}."
        raise NotFound(
            f"there is no view '{name}'", hint=f"did you mean '{close[0]}'?" if close else listed
        )
    if view.kind == "read":
        for source in view.reads:
            live_plan(db, plan, source)
        return view
    row = db.execute(
        "SELECT plan FROM _views WHERE name = ? AND state = 'live'", (view.name,)
    ).fetchone()
    if row is None:
        raise NotReady(
            f"view '{view.name}' is being built for the first time", hint="try again in a moment."
        )
    return _decoded(row[0])


@lru_cache(maxsize=1_000)  # every read of a view meets the same plan
def _decoded(text: str) -> ViewPlan:
    return msgspec.json.decode(text, type=ViewPlan)
