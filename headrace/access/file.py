"""The file of users, tokens, grants, sessions and the audit log: SQLite, for its owner alone.

It is made with mode 0600, so that no other user of the machine reads it. One connection reads and
one writes, each for all threads in turn, so that a question never waits for a change's fsync.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_TABLES = """
CREATE TABLE IF NOT EXISTS users (
  name TEXT PRIMARY KEY, made_at INTEGER NOT NULL, made_by TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS grants (
  user TEXT NOT NULL REFERENCES users ON DELETE CASCADE, may TEXT NOT NULL, object TEXT NOT NULL,
  made_at INTEGER NOT NULL, made_by TEXT NOT NULL,
  PRIMARY KEY (user, may, object)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tokens (
  id TEXT PRIMARY KEY, user TEXT NOT NULL REFERENCES users ON DELETE CASCADE, name TEXT NOT NULL,
  digest BLOB NOT NULL UNIQUE, may TEXT NOT NULL, objects TEXT NOT NULL, made_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL, revoked_at INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sessions (
  digest BLOB PRIMARY KEY, token TEXT NOT NULL REFERENCES tokens ON DELETE CASCADE,
  expires_at INTEGER NOT NULL, used_at INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS audit_log (
  number INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, user TEXT NOT NULL,
  token TEXT NOT NULL, what TEXT NOT NULL, object TEXT NOT NULL, decision TEXT NOT NULL,
  request TEXT NOT NULL, detail TEXT NOT NULL, chain TEXT NOT NULL);
CREATE TRIGGER IF NOT EXISTS audit_log_stays BEFORE UPDATE ON audit_log
  BEGIN SELECT raise(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER IF NOT EXISTS audit_log_is_kept BEFORE DELETE ON audit_log
  BEGIN SELECT raise(ABORT, 'the audit log is append-only'); END;
"""


class AccessFile:
    """The open file."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        self._writer, self._writing = _connect(path), threading.Lock()
        self._writer.executescript(_TABLES)
        self._reader, self._reading = _connect(path), threading.Lock()
        self._searcher, self._searching = _connect(path), threading.Lock()

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        with self._reading:
            yield self._reader

    @contextmanager
    def search(self) -> Iterator[sqlite3.Connection]:
        """For what may take long: nobody who is to be let in waits for it."""
        with self._searching:
            yield self._searcher

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it, or nothing."""
        with self._writing:
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                # SQLite has rolled back some failures itself, of a full disk for one.
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise

    def close(self) -> None:
        with self._reading, self._searching, self._writing:
            self._reader.close()
            self._searcher.close()
            self._writer.close()


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA foreign_keys = ON")
    # Without this, INSERT OR REPLACE would delete an entry of the audit log past its trigger.
    db.execute("PRAGMA recursive_triggers = ON")
    return db
