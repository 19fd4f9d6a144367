"""Opens a store: the one place that knows which databases there are."""

from __future__ import annotations

from pathlib import Path

from headrace.core.time import SECOND, Clock, now_us
from headrace.serving.database_store import DatabaseStore
from headrace.serving.sqlite import Sqlite


def open_store(path: Path, *, group_us: int = 10 * SECOND, clock: Clock = now_us) -> DatabaseStore:
    """The store in a file of SQLite, which is created if it is missing.

    >>> import tempfile
    >>> store = open_store(Path(tempfile.mkdtemp()) / "serving.db")
    >>> store.deployed() is None
    True
    """
    return DatabaseStore(Sqlite(path), group_us=group_us, clock=clock)
