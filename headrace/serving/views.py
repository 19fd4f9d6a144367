"""The views of one commit, as relations of the reading engine.

A view with stored partials is its cached rows, or the finish of its merged rows, which are read
from the store when the first query names it; a view over views is its own SELECT over theirs.
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
from headrace.serving.conditions import Condition, key_of, stored_where, window_range
from headrace.serving.database import Transaction
from headrace.serving.finish import cached_relation, columns_with_lists, merged_relation, rows_name
from headrace.serving.merged_rows import merged_rows, read_stored, typed_column
from headrace.serving.read_model import PublishedRows, ReadModel, StaleSnapshot
from headrace.serving.snapshot import AnswerProgress, NotCached, StoreSnapshot
from headrace.serving.table_rows import read_rows, relation_of, without_zone

Readable = Callable[[str], bool]  # whether a view may be read
_CUT = "_cut"


def all_readable(view: str) -> bool:
    return True


@dataclass(slots=True)
class Views:
    """Relations by name, and the tables behind those that were used: of a transaction, or without
    one of the published rows.
    """

    snapshot: StoreSnapshot
    db: Transaction | None = None
    readable: Readable = all_readable
    model: ReadModel | None = None
    published: PublishedRows | None = None
    tables: dict[str, pa.Table] = field(default_factory=dict)
    # Conditions on the rows to read of a view, by its name in lower case.
    conditions: Mapping[str, Collection[Condition]] = field(default_factory=dict)
    retries: bool = True  # whether the caller can retry in a newer snapshot

    @staticmethod
    def of(
        db: Transaction, readable: Readable = all_readable, model: ReadModel | None = None
    ) -> Views:
        snapshot = model.snapshot(db) if model else StoreSnapshot.of(db)
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
        """The live version of a view."""
        return self.snapshot.live(self.db, name)

    def progress(self, names: tuple[str, ...]) -> AnswerProgress:
        """The progress of the streams behind these views."""
        if self.model:
            self.model.record_use(names)
        return self.snapshot.progress(self.db, names)

    def find(self, name: str) -> ReadRelation | None:
        """A view or table that the caller may read."""
        return self._find_any(name) if self.readable(name) else None

    def _find_any(self, name: str) -> ReadRelation | None:
        """Without a check of permissions: a view may read what its caller may not."""
        if view := self.plan.view(name):
            return self.relation(view)
        table = next((t.name for t in self.plan.tables if t.name.lower() == name.lower()), None)
        if table is None:
            return None
        rows = read_rows(self.store, table)
        self.tables[table] = without_zone(rows)
        return relation_of(table, rows)

    def relation(self, view: ViewPlan) -> ReadRelation:
        """A view's rows."""
        if view.name == ALERTS and not view.reads:
            self.tables[ALERTS] = _alert_rows(self.store, view)
            return ReadRelation(quoted(ALERTS), answer_columns(view))
        if not view.kept:
            made = compile_query(parse_read(view.read_sql, Origin("plan", 1)), self._find_any)
            return ReadRelation(f"({made.sql})", columns_with_lists(view, made))
        return self._stored_view(self.live(view.name), fresh=False)

    def with_freshness(self, view: ViewPlan) -> ReadRelation:
        """A view's rows, each with whether speed contributed to it; for a view over views that is
        not known, so it is true.
        """
        if view.kept:
            return self._stored_view(view, fresh=True)
        rows = self.relation(view)
        columns = (*rows.columns, AnswerColumn(FRESH, "BOOLEAN"))
        return ReadRelation(f"(SELECT *, true AS {FRESH} FROM {rows.sql})", columns)

    def _stored_view(self, live: ViewPlan, *, fresh: bool) -> ReadRelation:
        """The rows of a version."""
        # A LIMIT of the view applies before any condition.
        conditions = self.conditions.get(live.name.lower(), ()) if live.limit is None else ()
        rows = self.rows(live, selective=bool(conditions))
        if rows is not None:
            key = key_of(live, conditions)
            self.tables[rows_name(live)] = rows.whole if key is None else rows.find(key)
            return cached_relation(live, fresh=fresh)
        self.tables[rows_name(live)] = self._merged(live, conditions)
        return merged_relation(live, fresh=fresh)

    def rows(self, live: ViewPlan, *, selective: bool) -> CachedRows | None:
        """The cached rows of a version; None if they are to be read from the store. `selective`
        queries have conditions on keys.
        """
        if self.model is None:
            return None
        if self.published is not None:
            return self.model.published_rows(self.published, live)
        try:
            return self.model.rows(self.store, live, selective=selective)
        except StaleSnapshot:
            if self.retries:
                raise
            return None

    def _merged(self, live: ViewPlan, conditions: Collection[Condition]) -> pa.Table:
        key = key_of(live, conditions)
        stored = read_stored(self.store, live, None if key is None else [key])
        where, windows = stored_where(live, conditions), window_range(live, conditions)
        table = merged_rows(live, stored, where, windows)
        if self.model:
            self.model.record_lookup(live, table.num_rows)
        return table

    def cut(self) -> set[str]:
        """The collected lists, by table and column, of which at least one was cut at its limit."""
        return {
            f"{name}.{column.removesuffix(_CUT)}"
            for name, table in self.tables.items()
            for column in table.column_names
            if column.endswith(_CUT) and pc.any(table.column(column)).as_py()
        }


def _alert_rows(db: Transaction, view: ViewPlan) -> pa.Table:
    """The rows of the view `alerts`."""
    names = ", ".join(quoted(output.name) for output in view.outputs)
    rows = db.execute(f"SELECT {names} FROM _ledger").fetchall()
    columns = zip(*rows, strict=True) if rows else ([] for _ in view.outputs)
    pairs = zip(view.outputs, columns, strict=True)
    return pa.table(
        {out.name: typed_column(out.type, pa.chunked_array([values])) for out, values in pairs}
    )
