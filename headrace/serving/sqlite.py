"""The store on SQLite: one file, one writer, any number of readers.

WAL mode gives each reader the state of one transaction while the writer continues. Every write
happens inside `SqliteDatabase.write()`, which checks the fencing token first, so a process that was
paused and replaced cannot commit. tests/serving/test_sqlite.py checks fencing, snapshots and
recovery.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headrace.core.errors import DiskFull, Unavailable
from headrace.core.migrations import bring_to_newest, transaction
from headrace.serving.changes import Changes
from headrace.serving.commits import check_token, publishing, take_token
from headrace.serving.sqlite_files import Connection
from headrace.serving.store_tables import STORE

JOURNAL_BYTES = 64 << 20


class SqliteDatabase:
    """Connections to one SQLite file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.token = 0
        self.changes = Changes()
        self._lock = threading.RLock()
        self._local = threading.local()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._writer = self._connect()
        with _errors():
            bring_to_newest(STORE, self._writer, path)
            # After the check of the version, so that a refused file is not modified.
            self._writer.execute("PRAGMA journal_mode = WAL")

    def _connect(self) -> Connection:
        connection = sqlite3.connect(
            self.path,
            factory=Connection,
            timeout=30,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=512,
        )
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA case_sensitive_like = ON")
        connection.execute("PRAGMA temp_store = MEMORY")
        # A large transaction leaves a large journal, which would stay until the process ends.
        connection.execute(f"PRAGMA journal_size_limit = {JOURNAL_BYTES}")
        connection.changes = self.changes
        return connection

    def take_over(self) -> None:
        """Become the writer: increment the token that each write checks."""
        with self._lock, _errors(), transaction(self._writer):
            self.token = take_token(self._writer)

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One write transaction of the current writer."""
        with self._lock, _errors(), publishing(self.changes, self._fenced()) as db:
            yield db

    @contextmanager
    def _fenced(self) -> Iterator[Connection]:
        with transaction(self._writer):
            check_token(self._writer, self.token)
            yield self._writer

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A snapshot: all reads inside see the same transaction."""
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._connect()
            connection.execute("PRAGMA query_only = ON")
        with _errors():
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.set_progress_handler(None, 0)
                connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the connections of this thread: the last connection to close removes the journal
        files of the database.
        """
        if (reader := getattr(self._local, "connection", None)) is not None:
            reader.close()
            self._local.connection = None
        with self._lock:
            self._writer.close()


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        if "full" in str(error):
            raise DiskFull(
                "the store's disk is full", hint="free some space; the work resumes by itself."
            ) from error
        if "locked" in str(error) or "busy" in str(error) or "disk I/O" in str(error):
            raise Unavailable(f"the store cannot be written now: {error}") from error
        raise
