"""Rows of views in memory, each view's as of one commit of the store.

A question takes its rows and what they speak for from one commit. If the rows that are kept are of
an older one, only those that changed since are read from the store. They can be thrown away at any
time, and are, where there are too many.

In the process that writes, the model follows commits: the rows that a transaction changes are read
before it ends, and published with it: the rows of all views that are asked for, of one commit.
Questions are answered from that without the store, so no reader waits until the model has been
brought up to date, and none finds an older answer than the store's.
tests/serving/test_read_model.py compares the kept rows with the store's after each commit.
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
from headrace.serving.finish import read_kept
from headrace.serving.runs import count_keys
from headrace.serving.snapshot import Names, NotCached, Snapshot

log = structlog.get_logger()
ROWS_MAX = 2_000_000
FEW = 5_000  # so many rows are looked up by the indexes of the store rather than kept
LOOKUPS_MAX = 20  # after so many questions for some rows of a view, all are kept
UNUSED_S = 60.0  # rows that nobody has asked for so long are forgotten


class StaleSnapshot(Exception):
    """The rows that are kept are newer than the snapshot; read again in a new one."""


@dataclass(slots=True)
class _Kept:
    """The rows of one view; whoever brings them up to date holds the lock."""

    view: str
    asked_at: float
    number: int = -1
    rows: CachedRows | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, slots=True)
class Published:
    """Rows of views, by the fingerprint of each, all of one commit."""

    snapshot: Snapshot
    rows: Mapping[str, CachedRows]


class ReadModel:
    """The kept rows of one store."""

    def __init__(self, changes: Changes, rows_max: int = ROWS_MAX) -> None:
        self.changes, self.rows_max = changes, rows_max
        self._kept: OrderedDict[str, _Kept] = OrderedDict()  # by fingerprint
        self._lookups: Counter[str] = Counter()  # questions for some rows, by fingerprint
        self._standings: dict[Names, float] = {}  # when each was asked for
        self._snapshot: Snapshot | None = None
        self._published: Published | None = None
        self._lock = threading.Lock()

    def snapshot(self, db: Transaction) -> Snapshot:
        """What is known of the transaction's commit."""
        known = self._snapshot
        if known is None or known.number != commit_number(db):
            known = self._snapshot = Snapshot.of(db)
        return known

    def rows(self, db: Transaction, live: ViewPlan, *, narrowed: bool) -> CachedRows | None:
        """The rows of a view in the transaction; None if a question with conditions on keys had
        better look for its rows in the store.
        """
        if narrowed and not self._worth(db, live):
            return None
        with self._lock:
            now = time.monotonic()
            kept = self._kept.setdefault(live.fingerprint, _Kept(live.name, now))
            kept.asked_at = now
            self._kept.move_to_end(live.fingerprint)
        rows = self._at(db, live, kept)
        self._shrink(live.fingerprint)
        return rows

    def looked_up(self, live: ViewPlan, rows: int) -> None:
        """So many rows were looked up in the store."""
        with self._lock:
            self._lookups[live.fingerprint] += LOOKUPS_MAX if rows > FEW else 1

    def _worth(self, db: Transaction, live: ViewPlan) -> bool:
        """Whether to keep all rows of a view of which some are asked for."""
        # Windows that are put together when read change with their neighbours, so all are read
        # again after each commit: for some of them that does not pay.
        if live.regroups:
            return False
        name = live.fingerprint
        if name in self._kept:
            return True
        if self._lookups[name] < LOOKUPS_MAX:
            return False
        if count_keys(db, live.stored_name) <= self.rows_max:
            return True
        self._lookups[name] = -1_000 * LOOKUPS_MAX  # and do not count again soon
        return False

    def _at(self, db: Transaction, live: ViewPlan, kept: _Kept) -> CachedRows | None:
        """The kept rows, brought to the commit of the transaction."""
        with kept.lock:
            number = commit_number(db)
            if kept.number > number:
                raise StaleSnapshot
            if kept.number < number:
                kept.rows = self._advanced(db, live, kept, number)
                kept.number = number
            return kept.rows

    def _advanced(self, db: Transaction, live: ViewPlan, kept: _Kept, number: int) -> CachedRows:
        keys = None
        if kept.rows is not None and not live.regroups:
            keys = self.changes.between(live.recompute, kept.number, number)
        if keys is None or kept.rows is None:
            read = kept.rows is not None and kept.rows.read
            return CachedRows.of(read_kept(db, live), read=read)
        return kept.rows.changed(keys, read_kept(db, live, keys)) if keys else kept.rows

    def _shrink(self, used: str) -> None:
        """Forget the views that were not asked for longest, while there are too many rows."""
        with self._lock:
            for name in list(self._kept):
                if sum(k.rows.count for k in self._kept.values() if k.rows) <= self.rows_max:
                    return
                if name != used or len(self._kept) == 1:
                    del self._kept[name]

    @property
    def bytes(self) -> int:
        """The memory of all kept rows."""
        return sum(kept.rows.bytes for kept in list(self._kept.values()) if kept.rows)

    # What is published with each commit

    def follow(self) -> None:
        """Follow the commits of this process from now on."""
        self.changes.commit_hook = self._follower

    def published(self) -> Published | None:
        """What was published with the newest commit."""
        found = self._published
        return found if found and found.snapshot.number >= self.changes.newest else None

    def published_rows(self, published: Published, live: ViewPlan) -> CachedRows:
        rows, kept = published.rows.get(live.fingerprint), self._kept.get(live.fingerprint)
        if rows is None:
            raise NotCached
        if kept is not None:
            kept.asked_at = time.monotonic()
        return rows

    def asked(self, names: Names) -> None:
        """An answer speaks for these views."""
        self._standings[names] = time.monotonic()

    def _follower(self, db: Transaction) -> Callable[[], None]:
        """Read what will be published when the transaction is committed."""
        try:
            snapshot, rows = Snapshot.of(db), self._following(db)
            self._stand(db, snapshot)
        except Exception as error:  # whoever asks will meet it; a commit is no question
            log.warning("read_model.not_published", reason=reason_of(error))
            return partial(self._publish, None)
        return partial(self._publish, Published(snapshot, rows) if rows else None)

    def _following(self, db: Transaction) -> dict[str, CachedRows]:
        """The rows of the views that were asked for lately, as they are in the transaction."""
        number, rows = commit_number(db), dict[str, CachedRows]()
        for name, kept in self._in_use():
            live = live_plan(db, kept.view)
            if live is not None and live.fingerprint == name:
                with kept.lock:
                    rows[name] = self._advanced(db, live, kept, number)
        return rows

    def _publish(self, published: Published | None) -> None:
        self._published = published
        if published is None:
            return
        self._snapshot = published.snapshot
        for name, rows in published.rows.items():
            if kept := self._kept.get(name):
                with kept.lock:
                    kept.number, kept.rows = published.snapshot.number, rows

    def _stand(self, db: Transaction, snapshot: Snapshot) -> None:
        """Read what the answers speak for that are asked for."""
        for names in list(self._standings):
            try:
                for name in names:
                    snapshot.live(db, name)
                snapshot.standing(db, names)
            except (NotFound, NotReady):  # it was removed, or is built as another one
                self._standings.pop(names, None)

    def _in_use(self) -> list[tuple[str, _Kept]]:
        """The views that were asked for lately; the others are forgotten."""
        oldest = time.monotonic() - UNUSED_S
        with self._lock:
            for name in [name for name, kept in self._kept.items() if kept.asked_at < oldest]:
                del self._kept[name]
            for names in [n for n, at in list(self._standings.items()) if at < oldest]:
                del self._standings[names]
            return list(self._kept.items())


_MODELS: WeakKeyDictionary[Changes, ReadModel] = WeakKeyDictionary()


def model_of(changes: Changes) -> ReadModel:
    """The one model of a store, which all its readers in this process share."""
    return _MODELS.setdefault(changes, ReadModel(changes))
