"""A cache of the rows of views, each view's as of one commit of the store.

A query takes its rows and its progress from one commit. If the cached rows are of an older one,
only those that changed since are read from the store. The cache can be dropped at any time, and
views are evicted when there are too many rows.

In the process that writes, the model follows commits: the rows that a transaction changes are read
before it ends and published with it, for all views in use, of one commit. Queries are answered from
them without the store, so no reader waits for the model to be updated, and none gets an older
answer than the store's.
tests/serving/test_read_model.py compares the cached rows with the store's after each commit.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from weakref import WeakKeyDictionary

import structlog

from headrace.compile.plan import ViewPlan
from headrace.core.errors import NotFound, NotReady
from headrace.core.problems import reason_of
from headrace.serving.cached_rows import CachedRows
from headrace.serving.catalog import live_plan
from headrace.serving.changes import Changes
from headrace.serving.commits import commit_number
from headrace.serving.database import Transaction
from headrace.serving.finish import read_cached
from headrace.serving.runs import count_keys
from headrace.serving.snapshot import Names, NotCached, StoreSnapshot

log = structlog.get_logger()
ROWS_MAX = 2_000_000
FEW = 5_000  # up to so many rows are looked up by the indexes of the store and not cached
LOOKUPS_MAX = 20  # after so many queries for some rows of a view, all are cached
UNUSED_S = 60.0  # views that were not read for so long are evicted


class StaleSnapshot(Exception):
    """The cached rows are newer than the snapshot; retry in a new one."""


@dataclass(slots=True)
class _CachedView:
    """The cached rows of one view; the lock is held while they are updated."""

    view: str
    used_at: float
    number: int = -1
    rows: CachedRows | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, slots=True)
class PublishedRows:
    """Rows of views, by the fingerprint of each, all of one commit."""

    snapshot: StoreSnapshot
    rows: Mapping[str, CachedRows]


class ReadModel:
    """The cached rows of one store."""

    def __init__(self, changes: Changes, rows_max: int = ROWS_MAX) -> None:
        self.changes, self.rows_max = changes, rows_max
        self._views: OrderedDict[str, _CachedView] = OrderedDict()  # by fingerprint
        self._lookups: Counter[str] = Counter()  # queries for some rows, by fingerprint
        self._progress_used: dict[Names, float] = {}  # when each was used
        self._snapshot: StoreSnapshot | None = None
        self._published: PublishedRows | None = None
        self._lock = threading.Lock()

    def snapshot(self, db: Transaction) -> StoreSnapshot:
        """The snapshot of the transaction's commit."""
        known = self._snapshot
        if known is None or known.number != commit_number(db):
            known = self._snapshot = StoreSnapshot.of(db)
        return known

    def rows(self, db: Transaction, live: ViewPlan, *, selective: bool) -> CachedRows | None:
        """The rows of a view in the transaction; None if a query with conditions on keys had better
        look up its rows in the store.
        """
        if selective and not self._worth_caching(db, live):
            return None
        with self._lock:
            now = time.monotonic()
            cached = self._views.setdefault(live.fingerprint, _CachedView(live.name, now))
            cached.used_at = now
            self._views.move_to_end(live.fingerprint)
        rows = self._updated_to(db, live, cached)
        self._evict(live.fingerprint)
        return rows

    def record_lookup(self, live: ViewPlan, rows: int) -> None:
        """Count a query that looked up so many rows in the store."""
        with self._lock:
            self._lookups[live.fingerprint] += LOOKUPS_MAX if rows > FEW else 1

    def _worth_caching(self, db: Transaction, live: ViewPlan) -> bool:
        """Whether to cache all rows of a view for queries that need some of them."""
        # Windows that are merged on read change with their neighbours, so all are read again after
        # each commit: that costs more than looking up some of them.
        if live.regroups:
            return False
        name = live.fingerprint
        if name in self._views:
            return True
        if self._lookups[name] < LOOKUPS_MAX:
            return False
        if count_keys(db, live.stored_name) <= self.rows_max:
            return True
        self._lookups[name] = -1_000 * LOOKUPS_MAX  # and do not count again soon
        return False

    def _updated_to(
        self, db: Transaction, live: ViewPlan, cached: _CachedView
    ) -> CachedRows | None:
        """The cached rows, updated to the commit of the transaction."""
        with cached.lock:
            number = commit_number(db)
            if cached.number > number:
                raise StaleSnapshot
            if cached.number < number:
                cached.rows = self._updated(db, live, cached, number)
                cached.number = number
            return cached.rows

    def _updated(
        self, db: Transaction, live: ViewPlan, cached: _CachedView, number: int
    ) -> CachedRows:
        keys = None
        if cached.rows is not None and not live.regroups:
            keys = self.changes.between(live.recompute, cached.number, number)
        if keys is None or cached.rows is None:
            read = cached.rows is not None and cached.rows.read
            return CachedRows.of(read_cached(db, live), read=read)
        return cached.rows.changed(keys, read_cached(db, live, keys)) if keys else cached.rows

    def _evict(self, used: str) -> None:
        """Evict the least recently used views while there are too many rows."""
        with self._lock:
            for name in list(self._views):
                if sum(k.rows.count for k in self._views.values() if k.rows) <= self.rows_max:
                    return
                if name != used or len(self._views) == 1:
                    del self._views[name]

    @property
    def bytes(self) -> int:
        """The memory of all cached rows."""
        return sum(cached.rows.bytes for cached in list(self._views.values()) if cached.rows)

    # What is published with each commit

    def follow(self) -> None:
        """Follow the commits of this process from now on."""
        self.changes.commit_hook = self._before_commit

    def published(self) -> PublishedRows | None:
        """The rows published with the newest commit."""
        found = self._published
        return found if found and found.snapshot.number >= self.changes.newest else None

    def published_rows(self, published: PublishedRows, live: ViewPlan) -> CachedRows:
        rows, cached = published.rows.get(live.fingerprint), self._views.get(live.fingerprint)
        if rows is None:
            raise NotCached
        if cached is not None:
            cached.used_at = time.monotonic()
        return rows

    def record_use(self, names: Names) -> None:
        """Record that an answer needs the progress of these views."""
        self._progress_used[names] = time.monotonic()

    def _before_commit(self, db: Transaction) -> Callable[[], None]:
        """Read the rows to publish when the transaction is committed."""
        try:
            snapshot, rows = StoreSnapshot.of(db), self._rows_in_use(db)
            self._read_progress(db, snapshot)
        except Exception as error:  # a query will raise it; the commit must not fail
            log.warning("read_model.not_published", reason=reason_of(error))
            return partial(self._publish, None)
        return partial(self._publish, PublishedRows(snapshot, rows) if rows else None)

    def _rows_in_use(self, db: Transaction) -> dict[str, CachedRows]:
        """The rows of the views in use, as of the transaction."""
        number, rows = commit_number(db), dict[str, CachedRows]()
        for name, cached in self._in_use():
            live = live_plan(db, cached.view)
            if live is not None and live.fingerprint == name:
                with cached.lock:
                    rows[name] = self._updated(db, live, cached, number)
        return rows

    def _publish(self, published: PublishedRows | None) -> None:
        self._published = published
        if published is None:
            return
        self._snapshot = published.snapshot
        for name, rows in published.rows.items():
            if cached := self._views.get(name):
                with cached.lock:
                    cached.number, cached.rows = published.snapshot.number, rows

    def _read_progress(self, db: Transaction, snapshot: StoreSnapshot) -> None:
        """Read the progress that recent answers needed."""
        for names in list(self._progress_used):
            try:
                for name in names:
                    snapshot.live(db, name)
                snapshot.progress(db, names)
            except (NotFound, NotReady):  # it was removed, or is being rebuilt
                self._progress_used.pop(names, None)

    def _in_use(self) -> list[tuple[str, _CachedView]]:
        """The views that were read lately; the others are evicted."""
        oldest = time.monotonic() - UNUSED_S
        with self._lock:
            for name in [name for name, cached in self._views.items() if cached.used_at < oldest]:
                del self._views[name]
            for names in [n for n, at in list(self._progress_used.items()) if at < oldest]:
                del self._progress_used[names]
            return list(self._views.items())


_MODELS: WeakKeyDictionary[Changes, ReadModel] = WeakKeyDictionary()


def model_of(changes: Changes) -> ReadModel:
    """The model of a store, shared by all its readers in this process."""
    return _MODELS.setdefault(changes, ReadModel(changes))
