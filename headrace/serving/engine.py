"""The reading engine: DuckDB in memory, over rows that are handed to it.

It reads nothing else: no file, no network, no setting can be reached by a query, and its memory,
threads and time are bounded. tests/serving/test_engine.py tries to get out.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache

import duckdb
import pyarrow as pa

from headrace.certified.udf import register
from headrace.core.cancellation import Cancellation
from headrace.core.errors import BadQuery, LimitReached
from headrace.serving import states

_memory = "1GB"
_LOOK_S = 0.05
NEVER = Cancellation()  # for what nobody stops


class _Watch:
    """Interrupts queries that are stopped or take too long: one thread for all of them, because to
    start one costs as much as a small query.

    A query is interrupted until it ends: an interrupt that comes before it has begun is forgotten.
    """

    def __init__(self) -> None:
        self._running: dict[int, tuple[duckdb.DuckDBPyConnection, float, Cancellation]] = {}
        self._begun = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()

    @contextmanager
    def over(
        self, cursor: duckdb.DuckDBPyConnection, seconds_max: float, stopping: Cancellation
    ) -> Iterator[None]:
        with self._begun:
            self._running[id(cursor)] = cursor, time.monotonic() + seconds_max, stopping
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, daemon=True)
                self._thread.start()
            self._begun.notify()
        try:
            yield
        finally:
            with self._begun:
                del self._running[id(cursor)]

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK_S):
            with self._begun:
                self._begun.wait_for(lambda: bool(self._running) or self._ended.is_set())
                for cursor, deadline, stopping in self._running.values():
                    if stopping.stopped or time.monotonic() > deadline:
                        cursor.interrupt()

    def end(self) -> None:
        with self._begun:
            self._ended.set()
            self._begun.notify()
        if self._thread:
            self._thread.join()


_WATCH = _Watch()


def set_memory(text: str) -> None:
    """How much memory the engine may use; said before its first query."""
    global _memory
    _memory = text


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """One for the process; a query has a cursor of its own."""
    connection = duckdb.connect(":memory:")
    register(connection)
    states.register(connection)
    for setting in (
        "TimeZone = 'UTC'",
        "python_enable_replacements = false",
        "threads = 1",
        f"memory_limit = '{_memory}'",
        "temp_directory = ''",
        "enable_external_access = false",
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")
    return connection


@atexit.register
def _close() -> None:
    """DuckDB complains at the end of a process about what is still open."""
    _WATCH.end()
    if _database.cache_info().currsize:
        _database().close()
        _database.cache_clear()


def run(
    sql: str,
    tables: Mapping[str, pa.Table],
    seconds_max: float = 30.0,
    stopping: Cancellation = NEVER,
) -> pa.Table:
    """The result of a query over these tables."""
    cursor = _database().cursor()
    try:
        stopping.check()
        for name, table in tables.items():
            cursor.register(name, table)
        with _WATCH.over(cursor, seconds_max, stopping):
            return cursor.sql(sql).to_arrow_table()
    except duckdb.InterruptException as error:
        stopping.check()
        raise LimitReached(
            f"the query took longer than {seconds_max:g} s",
            hint="ask for fewer rows, or raise query.seconds_max.",
        ) from error
    except duckdb.OutOfMemoryException as error:
        raise LimitReached(
            f"the query needs more than {_memory} of memory",
            hint="ask for fewer rows or groups, or raise query.engine_memory.",
        ) from error
    except duckdb.Error as error:
        raise BadQuery("the query cannot be answered", detail=str(error).splitlines()[0]) from error
    finally:
        cursor.close()
