"""Opens a store by its address: the one place that knows which databases there are.

A driver is imported when the first store of its kind is opened. tests/serving/test_opening.py
checks each function on each kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from headrace.core.address import FILE, POSTGRES, StoreAddress
from headrace.core.errors import Unsupported
from headrace.core.time import SECOND, Clock, now_us
from headrace.serving.database import Database, Transaction
from headrace.serving.database_store import DatabaseStore
from headrace.serving.sqlite import SqliteDatabase
from headrace.serving.sqlite_files import read_file


def open_store(
    address: StoreAddress, *, group_us: int = 10 * SECOND, clock: Clock = now_us
) -> DatabaseStore:
    """The store at an address, which is created if it is missing.

    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "serving.db"
    >>> open_store(StoreAddress.of_file(path)).deployed() is None
    True
    """
    return DatabaseStore(open_database(address), group_us=group_us, clock=clock)


def open_database(address: StoreAddress) -> Database:
    if address.kind == FILE:
        return SqliteDatabase(address.path)
    made: Database = _postgres(address).PostgresDatabase(address)
    return made


def store_exists(address: StoreAddress) -> bool:
    """Whether a store was ever opened there; this creates nothing."""
    if address.kind == FILE:
        return address.path.is_file()
    return bool(_postgres(address).schema_exists(address))


@contextmanager
def read_store(address: StoreAddress) -> Iterator[Transaction]:
    """A snapshot of an existing store, for a process that has not opened it. A store of an earlier
    version is read as if it were migrated, and is not modified.
    """
    in_file = address.kind == FILE
    with read_file(address.path) if in_file else _postgres(address).read_schema(address) as db:
        yield db


def _postgres(address: StoreAddress) -> ModuleType:
    if address.kind != POSTGRES:
        raise Unsupported(f"'{address.kind}' is not a supported kind of store")
    try:
        from headrace.serving import postgres
    except ImportError as error:
        raise Unsupported(
            "the store is in PostgreSQL, but the PostgreSQL driver is not installed",
            detail=str(error),
            hint="install it: pip install 'headrace[postgres]'",
        ) from error
    return postgres
