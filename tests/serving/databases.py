"""The databases that the store's tests run on.

A module with `pytestmark = on_every_database` runs once on each: what its tests open with
`open_database` or `open_store` is then in that database. Fixtures that live longer than a test ask
for the fixture `database`.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headrace.core.time import SECOND, Clock, now_us
from headrace.serving.database import Database, Transaction
from headrace.serving.database_store import DatabaseStore
from headrace.serving.postgres import Postgres
from headrace.serving.sqlite import Sqlite

SQLITE, POSTGRES = "sqlite", "postgres"
on_every_database = [
    pytest.mark.usefixtures("database"),
    pytest.mark.parametrize(
        "database",
        [SQLITE, pytest.param(POSTGRES, marks=pytest.mark.process)],
        indirect=True,
        scope="module",
    ),
]
_CATALOG = {
    True: "SELECT name FROM sqlite_master",
    False: "SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()",
}
_opener: Callable[[Path], Database] = Sqlite


@contextmanager
def in_postgres(url: str) -> Iterator[None]:
    """What is opened meanwhile is in a schema of this database, one for each path."""
    global _opener
    _opener = lambda path: Postgres(url, schema_of(path))  # noqa: E731
    try:
        yield
    finally:
        _opener = Sqlite


def open_database(path: Path) -> Database:
    return _opener(path)


def open_store(path: Path, group_us: int = 10 * SECOND, clock: Clock = now_us) -> DatabaseStore:
    return DatabaseStore(open_database(path), group_us=group_us, clock=clock)


def table_names(db: Transaction) -> set[str]:
    catalog = _CATALOG[isinstance(db, sqlite3.Connection)]
    return {name for (name,) in db.execute(f"SELECT name FROM ({catalog}) AS tables")}


def schema_of(path: Path) -> str:
    return "of_" + hashlib.sha256(str(path).encode()).hexdigest()[:16]
