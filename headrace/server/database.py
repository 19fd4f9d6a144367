"""`domain.db`: the desired state of a domain. Which processes run is known by file locks alone.

Every change is one transaction with its command, synced before the response. The lock of the home
folder ensures that one server writes. tests/server/test_commands.py checks both.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from headrace.core.migrations import DatabaseFormat, bring_to_newest, transaction

_TABLES = """
CREATE TABLE IF NOT EXISTS jobs (
  name TEXT PRIMARY KEY, owner TEXT NOT NULL, desired TEXT NOT NULL, version INTEGER NOT NULL,
  turn INTEGER NOT NULL, place TEXT NOT NULL, submitted_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL, failure TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS versions (
  job TEXT, number INTEGER, digest TEXT NOT NULL, names TEXT NOT NULL, submitted_by TEXT NOT NULL,
  submitted_at INTEGER NOT NULL, PRIMARY KEY (job, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS names (
  kind TEXT, key TEXT, job TEXT, name TEXT NOT NULL, PRIMARY KEY (kind, key, job)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS commands (
  id TEXT PRIMARY KEY, verb TEXT NOT NULL, job TEXT NOT NULL, asked TEXT NOT NULL,
  who TEXT NOT NULL, at INTEGER NOT NULL, result TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS deaths (
  number INTEGER PRIMARY KEY AUTOINCREMENT, job TEXT NOT NULL, at INTEGER NOT NULL,
  healthy INTEGER NOT NULL, why TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS deaths_of_jobs ON deaths (job, number);
CREATE TABLE IF NOT EXISTS instances (
  name TEXT PRIMARY KEY, url TEXT NOT NULL, pid INTEGER NOT NULL, room TEXT NOT NULL,
  started_at INTEGER NOT NULL) WITHOUT ROWID;
"""
DOMAIN = DatabaseFormat(
    "database of the server",
    _TABLES,
    remedy="move it away and submit the jobs again: each continues with its state.",
)


class DomainDatabase:
    """Transactions on one file; a connection lives no longer than its transaction."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(self._connect()) as db:
            bring_to_newest(DOMAIN, db, path)
            # Only after the format check: a file that is refused stays unchanged.
            db.execute("PRAGMA journal_mode = WAL")

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=30, isolation_level=None)
        db.execute("PRAGMA synchronous = FULL")
        return db

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction, committed if nothing is raised."""
        with closing(self._connect()) as db, transaction(db):
            yield db

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A snapshot of the file."""
        with closing(self._connect()) as db:
            db.execute("BEGIN")
            yield db
