"""The views of one commit, as relations of the reading engine.

A view that is kept is its rows in memory, or the finish of its merged rows, which are read from the
store when the first query names it; a view over views is its own SELECT over theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from headrace.certified.relation import AnswerColumn, ReadRelation
from headrace.certified.select import compile_query
from headrace.certified.typed import quoted
from headrace.compile.finish import answer_columns
from headrace.compile.plan import FRESH, Plan, ViewPlan
from headrace.core.origin import Origin
from headrace.core.rule import ALERTS
from headrace.define.dialect import parse_read
from headrace.serving.cached_rows import CachedRows
from headrace.serving.conditions import Condition, inside, key_of, span
from headrace.serving.database import Transaction
from headrace.serving.finish import kept_relation, merged_relation, rows_name, with_lists
from headrace.serving.ledger_rows import ledger_rows
from headrace.serving.merged_rows import merged_rows, read_stored
from headrace.serving.read_model import Published, ReadModel, StaleSnapshot
from headrace.serving.snapshot import AnswerProgress, NotCached, Snapshot
from headrace.serving.table_rows import read_rows, relation_of

Readable = Callable[[str], bool]  # whether a view may be read
_CUT = "_cut"


def everything(view: str) -> bool:
    return True


@dataclass(slots=True)
class Views:
    """Relations by name, and the tables behind those that were asked for: of a transaction, or of
    what was published, without one.
    """

    snapshot: Snapshot
    db: Transaction | None = None
    readable: Readable = everything
    model: ReadModel | None = None
    published: Published | None = None
    tables: dict[str, pa.Table] = field(default_factory=dict)
    # Conditions that hold for every row that is asked for of a view, by its name in lower case.
    narrowed: Mapping[str, Collection[Condition]] = field(default_factory=dict)
    again: bool = True  # whether the caller can ask again in a newer snapshot

    @staticmethod
    def of(
        db: Transaction, readable: Readable = everything, model: ReadModel | None = None
    ) -> Views:
        snapshot = model.snapshot(db) if model else Snapshot.of(db)
        return Views(snapshot, db, readable, model)

    @property
    def plan(self) -> Plan:
        return self.snapshot.plan

    @property
    def names(self) -> list[str]:
        return [view.name for view in self.plan.views if self.readable(view.name)]

    @property
    def store(self) -> Transaction:
        if self.db is None:
            raise NotCached
        return self.db

    def live(self, name: str) -> ViewPlan:
        """A view as it answers now."""
        return self.snapshot.live(self.db, name)

    def standing(self, names: tuple[str, ...]) -> AnswerProgress:
        """What an answer from these views speaks for."""
        if self.model:
            self.model.asked(names)
        return self.snapshot.standing(self.db, names)

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
        self.tables[table] = read_rows(self.store, table)
        return relation_of(table, self.tables[table])

    def relation(self, view: ViewPlan) -> ReadRelation:
        """A view's rows."""
        if view.name == ALERTS and not view.reads:
            self.tables[ALERTS] = ledger_rows(self.store, view)
            return ReadRelation(quoted(ALERTS), answer_columns(view))
        if not view.kept:
            made = compile_query(parse_read(view.read_sql, Origin("plan", 1)), self._below)
            return ReadRelation(f"({made.sql})", with_lists(view, made))
        return self._kept(self.live(view.name), fresh=False)

    def with_freshness(self, view: ViewPlan) -> ReadRelation:
        """A view's rows, each with whether speed took part in it; of a view over views that is not
        known of a row, so it is taken for granted.
        """
        if view.kept:
            return self._kept(view, fresh=True)
        rows = self.relation(view)
        columns = (*rows.columns, AnswerColumn(FRESH, "BOOLEAN"))
        return ReadRelation(f"(SELECT *, true AS {FRESH} FROM {rows.sql})", columns)

    def _kept(self, live: ViewPlan, *, fresh: bool) -> ReadRelation:
        """The rows of a version."""
        # A limit decides on the view's rows before a condition asks for some of them.
        asked = self.narrowed.get(live.name.lower(), ()) if live.limit is None else ()
        rows = self.rows(live, narrowed=bool(asked))
        if rows is not None:
            key = key_of(live, asked)
            self.tables[rows_name(live)] = rows.whole if key is None else rows.find(key)
            return kept_relation(live, fresh=fresh)
        self.tables[rows_name(live)] = self._merged(live, asked)
        return merged_relation(live, fresh=fresh)

    def rows(self, live: ViewPlan, *, narrowed: bool) -> CachedRows | None:
        """The rows of a version that are in memory; None if they are to be read from the store."""
        if self.model is None:
            return None
        if self.published is not None:
            return self.model.published_rows(self.published, live)
        try:
            return self.model.rows(self.store, live, narrowed=narrowed)
        except StaleSnapshot:
            if self.again:
                raise
            return None

    def _merged(self, live: ViewPlan, asked: Collection[Condition]) -> pa.Table:
        key = key_of(live, asked)
        stored = read_stored(self.store, live, None if key is None else [key])
        table = merged_rows(live, stored, inside(live, asked), span(live, asked))
        if self.model:
            self.model.looked_up(live, table.num_rows)
        return table

    def cut(self) -> set[str]:
        """The collected lists, by table and column, of which one was cut in the rows that were
        read.
        """
        return {
            f"{name}.{column.removesuffix(_CUT)}"
            for name, table in self.tables.items()
            for column in table.column_names
            if column.endswith(_CUT) and pc.any(table.column(column)).as_py()
        }
