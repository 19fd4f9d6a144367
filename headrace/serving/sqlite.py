"""The store on SQLite: one file, one writer, any number of readers.

WAL mode gives each reader the state of one transaction while the writer goes on. Every write
happens inside `Sqlite.write()`, which checks the fencing token first, so a process that was
paused and replaced cannot commit. tests/serving/test_sqlite.py checks fencing, snapshots and
recovery.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headrace.core.errors import DiskFull, Fenced, Unavailable
from headrace.serving import states
from headrace.serving.changes import Changes
from headrace.serving.commits import next_number, read_meta, write_meta
from headrace.serving.sqlite_files import Connection

_TABLES = """
CREATE TABLE IF NOT EXISTS _meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _streams (
  name TEXT PRIMARY KEY, plan TEXT NOT NULL, boundary TEXT NOT NULL, generation INTEGER NOT NULL,
  committed_at INTEGER, promoted_at INTEGER, late INTEGER NOT NULL DEFAULT 0,
  listened_at INTEGER, marks TEXT NOT NULL, boundary_highs TEXT NOT NULL,
  boundary_marks TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS _progress (
  stream TEXT, partition INTEGER, next_offset INTEGER NOT NULL, high_us INTEGER, heard_at INTEGER,
  PRIMARY KEY (stream, partition)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _groups (
  stream TEXT, number INTEGER, upper TEXT NOT NULL, opened_at INTEGER NOT NULL,
  closed INTEGER NOT NULL, highs TEXT NOT NULL, marks TEXT NOT NULL,
  PRIMARY KEY (stream, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _tables (
  name TEXT PRIMARY KEY, version TEXT NOT NULL, loaded_at INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _table_rows (name TEXT PRIMARY KEY, rows BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _provisional (
  version TEXT, number INTEGER, count INTEGER NOT NULL,
  PRIMARY KEY (version, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _epochs (
  number INTEGER PRIMARY KEY, stream TEXT NOT NULL, lower TEXT NOT NULL, upper TEXT NOT NULL,
  events INTEGER, late INTEGER, duplicates INTEGER, dead_letters INTEGER,
  started_at INTEGER, committed_at INTEGER);
CREATE TABLE IF NOT EXISTS _shed (
  stream TEXT, number INTEGER, lower TEXT NOT NULL, upper TEXT NOT NULL, decision TEXT NOT NULL,
  events INTEGER NOT NULL, total INTEGER NOT NULL, PRIMARY KEY (stream, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _views (
  name TEXT, version TEXT, stream TEXT, plan TEXT NOT NULL, state TEXT NOT NULL,
  since TEXT NOT NULL,
  PRIMARY KEY (name, version)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _disorder (
  version TEXT PRIMARY KEY, newest INTEGER NOT NULL, provisional INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _generations (
  stream TEXT, number INTEGER, boundary TEXT NOT NULL, promoted_at INTEGER NOT NULL,
  audits TEXT NOT NULL, PRIMARY KEY (stream, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _sinks (
  name TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, sequence INTEGER NOT NULL,
  delivered INTEGER NOT NULL, watermark_us INTEGER, dropped INTEGER NOT NULL,
  begun TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS _sink_rows (
  sink TEXT, key TEXT, told TEXT NOT NULL, PRIMARY KEY (sink, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _outbox (
  sink TEXT, sequence INTEGER, pane BLOB NOT NULL, PRIMARY KEY (sink, sequence)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _rules (
  name TEXT, version INTEGER, text TEXT NOT NULL, state TEXT NOT NULL, kept INTEGER NOT NULL,
  changed_at INTEGER NOT NULL, changed_by TEXT NOT NULL,
  PRIMARY KEY (name, version)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _looks (
  rule TEXT PRIMARY KEY, version INTEGER NOT NULL, since TEXT NOT NULL, position TEXT, marks TEXT,
  generation INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _alerts (
  number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, rule TEXT NOT NULL,
  version INTEGER NOT NULL, row_key TEXT NOT NULL, severity TEXT NOT NULL, body TEXT NOT NULL,
  event_time INTEGER NOT NULL, per TEXT NOT NULL, raised_at INTEGER NOT NULL,
  raised_by TEXT NOT NULL, position TEXT NOT NULL, quiet TEXT, suppressed_by TEXT,
  missed INTEGER NOT NULL, withdrawn_at INTEGER, left_at INTEGER, acknowledged_by TEXT,
  acknowledged_at INTEGER, note TEXT, arrived_at INTEGER);
CREATE INDEX IF NOT EXISTS _alerts_rows ON _alerts (rule, row_key);
CREATE INDEX IF NOT EXISTS _alerts_times ON _alerts (rule, per, event_time);
CREATE INDEX IF NOT EXISTS _alerts_ages ON _alerts (raised_at);
CREATE VIEW IF NOT EXISTS _ledger AS SELECT id, rule, version, severity,
  CASE WHEN acknowledged_at IS NOT NULL THEN 'acknowledged' ELSE coalesce(quiet, 'open') END state,
  body, event_time, raised_at, raised_by, suppressed_by, missed, withdrawn_at, acknowledged_by,
  acknowledged_at, note, number FROM _alerts;
CREATE TABLE IF NOT EXISTS _mutes (
  number INTEGER PRIMARY KEY AUTOINCREMENT, rule TEXT NOT NULL, keys TEXT NOT NULL,
  until_us INTEGER NOT NULL, muted_by TEXT NOT NULL, muted_at INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS _notices (
  number INTEGER PRIMARY KEY AUTOINCREMENT, action TEXT NOT NULL, key TEXT NOT NULL,
  rule TEXT NOT NULL, alerts TEXT NOT NULL, body BLOB, state TEXT NOT NULL,
  attempts INTEGER NOT NULL, due_at INTEGER NOT NULL, reason TEXT, ended_at INTEGER,
  queued_at INTEGER NOT NULL, UNIQUE (action, key));
CREATE INDEX IF NOT EXISTS _notices_due ON _notices (action, due_at) WHERE state = 'waiting';
CREATE INDEX IF NOT EXISTS _notices_rules ON _notices (rule);
CREATE INDEX IF NOT EXISTS _notices_ages ON _notices (ended_at);
CREATE TABLE IF NOT EXISTS _removed (
  what TEXT, name TEXT, kind TEXT, count INTEGER NOT NULL,
  PRIMARY KEY (what, name, kind)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _watches (
  number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, text TEXT NOT NULL,
  shape TEXT NOT NULL, constants TEXT NOT NULL, severity TEXT NOT NULL, actions TEXT NOT NULL,
  until_us INTEGER, matches_max INTEGER, kept INTEGER NOT NULL, added_at INTEGER NOT NULL,
  added_by TEXT NOT NULL, lower TEXT, upper TEXT, state TEXT NOT NULL,
  matches INTEGER NOT NULL, ended_at INTEGER, why TEXT);
CREATE INDEX IF NOT EXISTS _watches_names ON _watches (lower(name));
CREATE INDEX IF NOT EXISTS _watches_shapes ON _watches (shape, state);
CREATE INDEX IF NOT EXISTS _watches_open ON _watches (shape) WHERE upper IS NULL;
CREATE INDEX IF NOT EXISTS _watches_ends ON _watches (until_us) WHERE state = 'active';
CREATE TABLE IF NOT EXISTS _watch_looks (
  shape TEXT PRIMARY KEY, position TEXT NOT NULL, marks TEXT NOT NULL,
  generation INTEGER NOT NULL) WITHOUT ROWID;
"""


JOURNAL_BYTES = 64 << 20
WRITER = "writer"  # of `_meta`: the token of the process that may write


class Sqlite:
    """Connections to one SQLite file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.token = 0
        self.changes = Changes()
        self._lock = threading.RLock()
        self._local = threading.local()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._writer = self._connect()
        self._writer.executescript(_TABLES)

    def _connect(self) -> Connection:
        connection = sqlite3.connect(
            self.path,
            factory=Connection,
            timeout=30,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=512,
        )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA case_sensitive_like = ON")
        connection.execute("PRAGMA temp_store = MEMORY")
        # A large transaction leaves a large journal, which would stay as long as the process.
        connection.execute(f"PRAGMA journal_size_limit = {JOURNAL_BYTES}")
        # A staged table takes its name while views still speak of the one it replaces.
        connection.execute("PRAGMA legacy_alter_table = ON")
        states.register(connection)
        connection.changes = self.changes
        return connection

    def take_over(self) -> None:
        """Become the writer: the token that this process must find at each write."""
        with self._lock, _errors():
            connection = self._writer
            connection.execute("BEGIN IMMEDIATE")
            self.token = int(read_meta(connection, WRITER) or 0) + 1
            write_meta(connection, WRITER, str(self.token))
            connection.execute("COMMIT")

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One write transaction of the current writer."""
        with self._lock, _errors():
            self._writer.execute("BEGIN IMMEDIATE")
            self._writer.changed, number = {}, None
            try:
                self._check_token()
                yield self._writer
                if self._writer.changed:
                    # Readers may see the commit as soon as it is there, so it is known before.
                    number = next_number(self._writer)
                    self.changes.add(number, self._writer.changed)
                self._writer.execute("COMMIT")
            except BaseException:
                if number is not None:
                    self.changes.remove(number)
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise

    def _check_token(self) -> None:
        if read_meta(self._writer, WRITER) != str(self.token):
            raise Fenced(
                "another process has taken over this project", hint="this one can only be stopped."
            )

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
        """Close what this thread reads and writes with: the last one to close removes the files
        beside the database.
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
                "the store's disk is full", hint="free some space; the work goes on by itself."
            ) from error
        if "locked" in str(error) or "busy" in str(error) or "disk I/O" in str(error):
            raise Unavailable(f"the store cannot be written now: {error}") from error
        raise
