"""The store's database in PostgreSQL: one schema, one fenced writer, any number of readers.

A reader sees the snapshot of one REPEATABLE READ transaction. A write transaction first locks the
table with the writer's token and checks it, so a process that was paused and replaced cannot
commit, and its successor waits until a transaction that has begun is over. tests/serving runs the
store's tests on it; tests/serving/test_postgres.py checks fencing, snapshots and lost connections.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors, sql
from psycopg.abc import AdaptContext
from psycopg.adapt import Dumper, Loader
from psycopg_pool import ConnectionPool, PoolTimeout

from headrace.core.errors import DiskFull, Unavailable
from headrace.core.migrations import Dialect, bring_to_newest, transaction
from headrace.serving.changes import ChangedKeys, Changes
from headrace.serving.commits import check_token, publishing, take_token
from headrace.serving.database import Parameters, Rows
from headrace.serving.postgres_sql import for_postgres
from headrace.serving.store_tables import STORE

READERS_MAX = 16
CONNECT_S_MAX = 10
# A process that is paused within a transaction loses it, so that its successor can write.
IDLE_S_MAX = 120
_UNAVAILABLE = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    errors.IdleInTransactionSessionTimeout,
    PoolTimeout,
)
_DIALECT = Dialect(
    tables="SELECT tablename, NULL FROM pg_tables WHERE schemaname = current_schema()",
    # Two processes that open an empty schema at once would both create its tables.
    begin="BEGIN; SELECT pg_advisory_xact_lock(hashtext(current_schema()))",
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


class Postgres:
    """Connections to one schema of a PostgreSQL database, which is created if it is missing."""

    def __init__(self, url: str, schema: str) -> None:
        self.url, self.schema = url, schema
        self.token = 0
        self.changes = Changes()
        self._lock = threading.RLock()
        with _errors():
            self._writer = PostgresTransaction(self._connect(), self.changes)
            self._migrate()
        self._readers = ConnectionPool(
            self.url,
            kwargs=self._options(),
            configure=self._configure,
            min_size=0,
            max_size=READERS_MAX,
            timeout=CONNECT_S_MAX,
            check=ConnectionPool.check_connection,
            open=True,
        )

    def _migrate(self) -> None:
        self._writer.execute(f'CREATE SCHEMA IF NOT EXISTS "{self.schema}"')
        bring_to_newest(STORE, self._writer, f"schema {self.schema} of PostgreSQL", _DIALECT)

    def _options(self) -> dict[str, Any]:
        return {
            "autocommit": True,  # transactions are begun and ended by statements
            "cursor_factory": psycopg.RawCursor,
            "connect_timeout": CONNECT_S_MAX,
            "application_name": "headrace",
        }

    def _connect(self) -> psycopg.Connection[Any]:
        connection: psycopg.Connection[Any] = psycopg.connect(self.url, **self._options())
        self._configure(connection)
        return connection

    def _configure(self, connection: psycopg.Connection[Any]) -> None:
        connection.adapters.register_dumper(bool, _BoolAsNumber)
        connection.adapters.register_loader("numeric", _WholeNumber)
        name = sql.Identifier(self.schema)
        connection.execute(sql.SQL("SET search_path TO {}").format(name))
        connection.execute(f"SET idle_in_transaction_session_timeout = '{IDLE_S_MAX} s'")

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
            self._writer = PostgresTransaction(self._connect(), self.changes)
        with transaction(self._writer, "BEGIN; LOCK TABLE _meta IN EXCLUSIVE MODE"):
            yield self._writer

    @contextmanager
    def read(self) -> Iterator[PostgresTransaction]:
        """A snapshot: all reads inside see the same transaction."""
        with _errors(), self._readers.connection() as connection:
            db = PostgresTransaction(connection, self.changes)
            db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                yield db
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")

    def close(self) -> None:
        self._readers.close()
        with self._lock:
            self._writer.close()


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
    except _UNAVAILABLE as error:
        said = str(error).strip().splitlines()
        raise Unavailable(
            f"PostgreSQL cannot be used now: {said[0] if said else type(error).__name__}"
        ) from error
