"""A SQLite database as a file: read from another process, checked, and copied.

tests/run/test_backup.py and tests/run/test_verify.py use it on running and on stopped projects.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from headrace.core.errors import Unavailable
from headrace.core.files import sync
from headrace.core.migrations import transaction
from headrace.serving.changes import ChangedKeys, Changes
from headrace.serving.store_tables import STORE

_TIMEOUT_S = 60
sqlite_version = sqlite3.sqlite_version


class Connection(sqlite3.Connection):
    """A connection with the changes of its transaction and of the newest commits."""

    changed: ChangedKeys
    changes: Changes

    def listed(self, values: Sequence[str]) -> tuple[str, Any]:
        return "SELECT value FROM json_each(?)", json.dumps(list(values))


@contextmanager
def read_file(path: Path) -> Iterator[Connection]:
    """A snapshot of a store, for a process that has not opened it. A store of an earlier version is
    read as if it were migrated, and is not modified.
    """
    try:
        with closing(_read_only(path)) as db:
            newest = STORE.is_newest(db, path)
            if newest:
                yield db
        if not newest:
            with closing(_writable(path)) as db:
                db.execute("BEGIN IMMEDIATE")  # never committed
                STORE.migrate(db, path)
                yield db
    except sqlite3.DatabaseError as error:
        raise Unavailable(f"the store at {path} cannot be read: {error}") from error


@contextmanager
def edit_file(path: Path) -> Iterator[Connection]:
    """One transaction on a store that no process has open; it migrates the store first."""
    with closing(_writable(path)) as db, transaction(db):
        STORE.migrate(db, path)
        yield db


def integrity_errors(path: Path) -> list[str]:
    """The errors of SQLite's integrity check; empty if there are none."""
    try:
        with closing(_read_only(path)) as db:
            found = [row[0] for row in db.execute("PRAGMA integrity_check(3)")]
    except sqlite3.DatabaseError as error:
        return [str(error)]
    return [] if found == ["ok"] else found


def copy_database(source: Path, target: Path) -> None:
    """Copy a snapshot of a database into a new file."""
    os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, source.stat().st_mode & 0o777))
    with closing(_read_only(source)) as original, closing(sqlite3.connect(target)) as copy:
        original.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
    sync(target)


def _writable(path: Path) -> Connection:
    return sqlite3.connect(path, isolation_level=None, timeout=_TIMEOUT_S, factory=Connection)


def _read_only(path: Path) -> Connection:
    return sqlite3.connect(
        f"{path.as_uri()}?mode=ro", uri=True, timeout=_TIMEOUT_S, factory=Connection
    )
