"""The store's database in PostgreSQL: one schema, one fenced writer, any number of readers.

A reader sees the snapshot of one REPEATABLE READ transaction. A write transaction first locks the
table with the writer's token and checks it, so a process that was paused and replaced cannot
commit, and its successor waits until a transaction that has begun is over. tests/serving runs the
store's tests on it; tests/serving/test_postgres.py checks fencing, snapshots and lost connections.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import psycopg
from psycopg import errors, sql
from psycopg.abc import AdaptContext
from psycopg.adapt import Dumper, Loader

from headrace.core.address import StoreAddress
from headrace.core.errors import BadRequest, DiskFull, Unavailable
from headrace.core.migrations import Dialect, bring_to_newest, transaction
from headrace.serving.changes import ChangedKeys, Changes
from headrace.serving.commits import check_token, publishing, take_token
from headrace.serving.database import Parameters, Rows
from headrace.serving.postgres_sql import for_postgres
from headrace.serving.store_tables import STORE

READERS_MAX = 16
CONNECT_S_MAX = 10
# A process that is paused within a write transaction loses it, so that its successor can write.
IDLE_S_MAX = 120
# A reader computes within its snapshot, for up to an hour, and no writer waits for it.
READER_IDLE_S_MAX = 7_200
_OPTIONS: dict[str, Any] = {
    "autocommit": True,  # transactions are begun and ended by statements
    "cursor_factory": psycopg.RawCursor,
    "connect_timeout": CONNECT_S_MAX,
    "application_name": "headrace",
}
_UNAVAILABLE = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    errors.IdleInTransactionSessionTimeout,
)
_DIALECT = Dialect(
    tables="SELECT tablename, NULL FROM pg_tables WHERE schemaname = current_schema()",
    # Two processes that open a new schema at once would both create it and its tables.
    begin="BEGIN; SELECT pg_advisory_xact_lock(hashtext('headrace'))",
)


class PostgresTransaction:
    """A connection with the changes of its transaction and of the newest commits."""

    def __init__(self, connection: psycopg.Connection[Any], changes: Changes) -> None:
        self.changed: ChangedKeys = {}
        self.changes = changes
        self._connection = connection

    @property
    def in_transaction(self) -> bool:
        idle = psycopg.pq.TransactionStatus.IDLE
        return not self._connection.closed and self._connection.info.transaction_status != idle

    def execute(self, sql: str, parameters: Parameters = (), /) -> Rows:
        # Without parameters a text may be several statements, as in `_DIALECT.begin`.
        return self._connection.execute(for_postgres(sql), parameters or None)

    def executemany(self, sql: str, rows: Iterable[Parameters], /) -> Rows:
        cursor = self._connection.cursor()
        cursor.executemany(for_postgres(sql), rows)
        return cursor

    def listed(self, values: Sequence[str]) -> tuple[str, Any]:
        return "SELECT unnest(?::text[]) AS value", list(values)

    @property
    def closed(self) -> bool:
        return self._connection.closed

    def close(self) -> None:
        self._connection.close()


class Readers:
    """Connections of readers, which are used again. A reader that finds the server gone fails at
    once: a request for the status must not wait for it.
    """

    def __init__(self, address: StoreAddress, changes: Changes) -> None:
        self._address, self._changes = address, changes
        self._turns = threading.BoundedSemaphore(READERS_MAX)
        self._idle: list[PostgresTransaction] = []

    @contextmanager
    def snapshot(self) -> Iterator[PostgresTransaction]:
        with self._turns:
            db = self._begin()
            try:
                yield db
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                if not db.closed:
                    self._idle.append(db)

    def _begin(self) -> PostgresTransaction:
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        while (db := self._next_idle()) is not None:
            try:
                db.execute(begin)
                return db
            except psycopg.OperationalError:  # the server was restarted since
                db.close()
        connection = _connect(self._address, READER_IDLE_S_MAX)
        db = PostgresTransaction(connection, self._changes)
        db.execute(begin)
        return db

    def _next_idle(self) -> PostgresTransaction | None:
        try:
            return self._idle.pop()
        except IndexError:  # another thread may have taken the last one
            return None

    def close(self) -> None:
        while (db := self._next_idle()) is not None:
            db.close()


class PostgresDatabase:
    """Connections to one schema of a PostgreSQL database, which is created if it is missing."""

    def __init__(self, address: StoreAddress) -> None:
        self.address = address
        self.token = 0
        self.changes = Changes()
        self._lock = threading.RLock()
        with _errors():
            self._writer = PostgresTransaction(_connect(address), self.changes)
            self._migrate()
        self._readers = Readers(address, self.changes)

    def _migrate(self) -> None:
        if not _has_tables(self._writer, self.address):
            schema = self.address.schema.replace('"', '""')
            with transaction(self._writer, _DIALECT.begin):
                self._writer.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
        bring_to_newest(STORE, self._writer, str(self.address), _DIALECT)

    def take_over(self) -> None:
        """Become the writer: increment the token that each write checks."""
        with self._lock, _errors(), self._transaction() as db:
            self.token = take_token(db)

    @contextmanager
    def write(self) -> Iterator[PostgresTransaction]:
        """One write transaction of the current writer."""
        with self._lock, _errors(), publishing(self.changes, self._fenced()) as db:
            yield db

    @contextmanager
    def _fenced(self) -> Iterator[PostgresTransaction]:
        with self._transaction() as db:
            check_token(db, self.token)
            yield db

    @contextmanager
    def _transaction(self) -> Iterator[PostgresTransaction]:
        """A transaction of the writer's connection, which is opened again if it was lost. It locks
        the table that has the token, so that it is the only one that writes.
        """
        if self._writer.closed:
            self._writer = PostgresTransaction(_connect(self.address), self.changes)
        with transaction(self._writer, "BEGIN; LOCK TABLE _meta IN EXCLUSIVE MODE"):
            yield self._writer

    @contextmanager
    def read(self) -> Iterator[PostgresTransaction]:
        """A snapshot: all reads inside see the same transaction."""
        with _errors(), self._readers.snapshot() as db:
            yield db

    def close(self) -> None:
        self._readers.close()
        with self._lock:
            self._writer.close()


def schema_exists(address: StoreAddress) -> bool:
    """Whether the schema has the tables of a store."""
    with _errors(), closing(_connect(address)) as connection:
        return _has_tables(PostgresTransaction(connection, Changes()), address)


@contextmanager
def read_schema(address: StoreAddress) -> Iterator[PostgresTransaction]:
    """A snapshot of a store; one of an earlier version as if it were migrated."""
    with _errors(), closing(_connect(address)) as connection:
        db = PostgresTransaction(connection, Changes())
        db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")  # never committed
        STORE.migrate(db, str(address), _DIALECT)
        yield db


def _connect(address: StoreAddress, idle_s_max: int = IDLE_S_MAX) -> psycopg.Connection[Any]:
    connection: psycopg.Connection[Any] = psycopg.connect(address.place, **_OPTIONS)
    _configure(connection, address, idle_s_max)
    return connection


def _configure(connection: psycopg.Connection[Any], address: StoreAddress, idle_s_max: int) -> None:
    connection.adapters.register_dumper(bool, _BoolAsNumber)
    connection.adapters.register_loader("numeric", _WholeNumber)
    name = sql.Identifier(address.schema)
    connection.execute(sql.SQL("SET search_path TO {}").format(name))
    connection.execute(f"SET idle_in_transaction_session_timeout = '{idle_s_max} s'")


def _has_tables(db: PostgresTransaction, address: StoreAddress) -> bool:
    found = "SELECT 1 FROM pg_tables WHERE schemaname = ? AND tablename = '_meta'"
    return db.execute(found, (address.schema,)).fetchone() is not None


class _BoolAsNumber(Dumper):
    """A truth value as 1 or 0, which is how columns of either database hold it."""

    oid = psycopg.postgres.types["int8"].oid

    def dump(self, obj: bool) -> bytes:
        return b"1" if obj else b"0"


class _WholeNumber(Loader):
    """A sum of whole numbers, which PostgreSQL returns as NUMERIC."""

    def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
        super().__init__(oid, context)

    def load(self, data: Any) -> int:
        return int(bytes(data))


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except errors.DiskFull as error:
        raise DiskFull(
            "the store's disk is full", hint="free some space; the work resumes by itself."
        ) from error
    except psycopg.DataError as error:
        if "NUL" not in str(error):
            raise
        raise BadRequest(
            "a text with the character U+0000 cannot be stored in PostgreSQL", hint="remove it."
        ) from error
    except _UNAVAILABLE as error:
        said = str(error).strip().splitlines()
        raise Unavailable(
            f"PostgreSQL cannot be used now: {said[0] if said else type(error).__name__}"
        ) from error
