"""The file of users, tokens, grants, sessions and the audit log: SQLite, for its owner alone.

It is created with mode 0600, so that no other user of the machine reads it. One connection reads
and one writes, each shared by all threads, so that a read never waits for the fsync of a write.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headrace.core.migrations import DatabaseFormat, bring_to_newest, transaction

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
USERS = DatabaseFormat("file of users", _TABLES, remedy="move it away and create the users again.")


class AccessFile:
    """The open file."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        self._writer, self._writing = _connect(path), threading.Lock()
        bring_to_newest(USERS, self._writer, path)
        # Only after the format check: a file that is refused stays unchanged.
        self._writer.execute("PRAGMA journal_mode = WAL")
        self._reader, self._reading = _connect(path), threading.Lock()
        self._searcher, self._searching = _connect(path), threading.Lock()

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        with self._reading:
            yield self._reader

    @contextmanager
    def search(self) -> Iterator[sqlite3.Connection]:
        """For slow reads, so that authentication does not wait for them."""
        with self._searching:
            yield self._searcher

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it, or nothing."""
        with self._writing, transaction(self._writer):
            yield self._writer

    def close(self) -> None:
        with self._reading, self._searching, self._writing:
            self._reader.close()
            self._searcher.close()
            self._writer.close()


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA foreign_keys = ON")
    # Without this, INSERT OR REPLACE would delete an entry of the audit log past its trigger.
    db.execute("PRAGMA recursive_triggers = ON")
    return db
