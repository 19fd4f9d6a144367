"""Merged rows that are kept in memory between reads, each view's as of one commit of the store.

A read takes its rows and what they speak for from one snapshot of the store. If the rows that are
kept are of an older commit, only those that changed since are read from the store. They can be
thrown away at any time, and are, where there are too many. tests/serving/test_read_model.py
compares the kept rows with the store's after each commit.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc

from headrace.compile.plan import CallPlan, ViewPlan
from headrace.serving.catalog import tables_of
from headrace.serving.changes import Changes
from headrace.serving.commits import commit_number
from headrace.serving.database import Transaction
from headrace.serving.merged import KEY, arrow, merged_sql

ROWS_MAX = 2_000_000
FEW = 5_000  # so many rows are looked up by the indexes of the store rather than kept
CHUNKS_MAX = 8
Name = tuple[str, tuple[CallPlan, ...]]  # a version, and how its aggregates are finished


class Moved(Exception):
    """The rows that are kept are newer than the snapshot; read again in a new one."""


@dataclass(slots=True)
class _Kept:
    """The rows of one view; whoever brings them up to date holds the lock."""

    number: int = -1
    table: pa.Table | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class ReadModel:
    """The kept rows of one store."""

    def __init__(self, changes: Changes, rows_max: int = ROWS_MAX) -> None:
        self.changes, self.rows_max = changes, rows_max
        self._kept: OrderedDict[Name, _Kept] = OrderedDict()
        self._wide: set[Name] = set()  # views of which conditions have selected many rows
        self._lock = threading.Lock()

    def rows(self, db: Transaction, live: ViewPlan, *, narrowed: bool) -> pa.Table | None:
        """All merged rows of a view in the snapshot; None if a question with conditions on keys had
        better look for its rows in the store.
        """
        name = live.recompute, live.calls
        kept = self._entry(name, narrowed=narrowed, regroups=live.regroups)
        if kept is None:
            return None
        with kept.lock:
            number = commit_number(db)
            if kept.number > number:
                raise Moved
            if kept.number < number:
                kept.table = self._advanced(db, live, kept, number)
                kept.number = number
            table = kept.table
        self._shrink(name)
        return table

    def found(self, live: ViewPlan, rows: int) -> None:
        """So many rows were looked for in the store; after many, the next time all are kept."""
        if rows > FEW and not live.regroups:
            with self._lock:
                self._wide.add((live.recompute, live.calls))

    def _entry(self, name: Name, *, narrowed: bool, regroups: bool) -> _Kept | None:
        with self._lock:
            # Windows that are put together when read change with their neighbours, so all are
            # read again after each commit: for some of them that does not pay.
            if narrowed and (regroups or name not in self._wide):
                return None
            self._kept.setdefault(name, _Kept())
            self._kept.move_to_end(name)
            return self._kept[name]

    def _advanced(self, db: Transaction, live: ViewPlan, kept: _Kept, number: int) -> pa.Table:
        keys = None
        if kept.table is not None and not live.regroups:
            keys = self.changes.between(live.recompute, kept.number, number)
        if keys is None or kept.table is None:
            return read_merged(db, live)
        if not keys:
            return kept.table
        listed, value = db.listed(sorted(keys))
        fresh = read_merged(db, live, f"{KEY} IN ({listed})", value)
        old = pc.is_in(kept.table.column(KEY), value_set=pa.array(sorted(keys), pa.string()))
        table = pa.concat_tables([kept.table.filter(pc.invert(old)), fresh])
        many = table.num_columns and table.column(0).num_chunks > CHUNKS_MAX
        return table.combine_chunks() if many else table

    def _shrink(self, used: Name) -> None:
        """Forget the views that were not asked for longest, while there are too many rows."""
        with self._lock:
            for name in list(self._kept):
                rows = [kept.table.num_rows for kept in self._kept.values() if kept.table]
                if sum(rows) <= self.rows_max:
                    return
                if name != used or len(self._kept) == 1:
                    del self._kept[name]


_MODELS: WeakKeyDictionary[Changes, ReadModel] = WeakKeyDictionary()


def model_of(changes: Changes) -> ReadModel:
    """The one model of a store, which all its readers in this process share."""
    return _MODELS.setdefault(changes, ReadModel(changes))


def read_merged(db: Transaction, live: ViewPlan, where: str = "", value: str = "") -> pa.Table:
    """The merged rows of a view that meet a condition, from the store."""
    sql = merged_sql(live, *tables_of(live)[:2], where=where)
    # The condition stands in both arms of the union.
    return arrow(live, db.execute(sql, [value, value] if where else []))
