"""The reading engine: DuckDB in memory, over tables that are passed to it.

A query cannot reach anything else, neither files nor network nor settings, and its memory, threads
and time are bounded. tests/serving/test_engine.py tries to get out.
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

from headrace.certified.connection import isolated_connection
from headrace.core.cancellation import Cancellation
from headrace.core.errors import BadQuery, LimitReached
from headrace.serving import states

_memory = "1GB"
_INTERVAL_S = 0.05
NEVER = Cancellation()  # for queries that nobody cancels


class _Interrupter:
    """Interrupts queries that are cancelled or exceed their time: one thread for all, because
    starting a thread costs as much as a small query.

    A query is interrupted again and again until it ends: DuckDB ignores an interrupt before the
    query has started.
    """

    def __init__(self) -> None:
        self._running: dict[int, tuple[duckdb.DuckDBPyConnection, float, Cancellation]] = {}
        self._started = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()

    @contextmanager
    def watching(
        self, cursor: duckdb.DuckDBPyConnection, seconds_max: float, cancellation: Cancellation
    ) -> Iterator[None]:
        with self._started:
            self._running[id(cursor)] = cursor, time.monotonic() + seconds_max, cancellation
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()
            self._started.notify()
        try:
            yield
        finally:
            with self._started:
                del self._running[id(cursor)]

    def _run(self) -> None:
        while not self._ended.wait(_INTERVAL_S):
            with self._started:
                self._started.wait_for(lambda: bool(self._running) or self._ended.is_set())
                for cursor, deadline, cancellation in self._running.values():
                    if cancellation.stopped or time.monotonic() > deadline:
                        cursor.interrupt()

    def end(self) -> None:
        with self._started:
            self._ended.set()
            self._started.notify()
        if self._thread:
            self._thread.join()


_INTERRUPTER = _Interrupter()


def set_memory(text: str) -> None:
    """Set the memory limit of the engine, before its first query."""
    global _memory
    _memory = text


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """The connection of the process; each query has its own cursor."""
    connection = isolated_connection(_memory)
    states.register(connection)
    return connection


@atexit.register
def _close() -> None:
    """DuckDB warns about open connections when a process exits."""
    _INTERRUPTER.end()
    if _database.cache_info().currsize:
        _database().close()
        _database.cache_clear()


def run(
    sql: str,
    tables: Mapping[str, pa.Table],
    seconds_max: float = 30.0,
    cancellation: Cancellation = NEVER,
) -> pa.Table:
    """The result of a query over these tables."""
    cursor = _database().cursor()
    try:
        cancellation.check()
        for name, table in tables.items():
            cursor.register(name, table)
        with _INTERRUPTER.watching(cursor, seconds_max, cancellation):
            return cursor.sql(sql).to_arrow_table()
    except duckdb.InterruptException as error:
        cancellation.check()
        raise LimitReached(
            f"the query timed out after {seconds_max:g} seconds and was cancelled",
            hint="restrict it with WHERE, or raise query.seconds_max.",
        ) from error
    except duckdb.OutOfMemoryException as error:
        raise LimitReached(
            f"the query exceeded the memory limit of {_memory}",
            hint="ask for fewer rows or groups, or raise query.engine_memory.",
        ) from error
    except duckdb.Error as error:
        raise BadQuery("the query cannot be answered", detail=str(error).splitlines()[0]) from error
    finally:
        cursor.close()
