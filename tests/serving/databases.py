"""Opens what the store's tests store, in the database that a module's tests run on (marks.py).

Processes that tests start import this too, so it needs no pytest.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headrace.core.address import StoreAddress
from headrace.serving import opening
from headrace.serving.database import Database, Transaction
from headrace.serving.database_store import DatabaseStore

_CATALOG = {
    True: "SELECT name FROM sqlite_master",
    False: "SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()",
}
# The address of PostgreSQL, while tests run on it; processes that they start inherit it.
_URL = "HEADRACE_TEST_POSTGRES"


@contextmanager
def in_postgres(url: str) -> Iterator[None]:
    """What is opened meanwhile is in a schema of this database, one for each path."""
    os.environ[_URL] = url
    try:
        yield
    finally:
        del os.environ[_URL]


def address_of(path: Path) -> StoreAddress:
    url = os.environ.get(_URL)
    return postgres_address(url, path) if url else StoreAddress.of_file(path)


def postgres_address(url: str, path: Path) -> StoreAddress:
    """A schema of its own for each path."""
    digest = hashlib.sha256(str(path).encode()).hexdigest()
    return StoreAddress.of_postgres(url, f"of {digest[:16]}")


def open_database(path: Path) -> Database:
    return opening.open_database(address_of(path))


def open_store(path: Path, **options: Any) -> DatabaseStore:
    return opening.open_store(address_of(path), **options)


def as_version_1(db: Any, state_tables: Iterable[str] = ()) -> None:
    """Give a store the tables of version 1 of its format, which has no checksums."""
    for table in ("_runs", "_table_rows"):
        db.execute(f"ALTER TABLE {table} DROP COLUMN checksum")
    for table in state_tables:
        db.execute(f"ALTER TABLE {table} DROP COLUMN _checksum")
    db.execute("UPDATE _meta SET value = '1' WHERE key = 'schema_version'")


def table_names(db: Transaction) -> set[str]:
    catalog = _CATALOG[isinstance(db, sqlite3.Connection)]
    return {name for (name,) in db.execute(f"SELECT name FROM ({catalog}) AS tables")}
