"""The reading engine: DuckDB in memory, over rows that are handed to it.

It reads nothing else: no file, no network, no setting can be reached by a query, and its memory,
threads and time are bounded. tests/serving/test_engine.py tries to get out.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from functools import cache

import duckdb
import pyarrow as pa

from headrace.certified.udf import register
from headrace.core.errors import BadQuery, LimitReached
from headrace.core.stopping import Stopping

MEMORY = "1GB"
_LOOK_S = 0.05
NEVER = Stopping()  # for what nobody stops


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """One for the process; a query has a cursor of its own."""
    connection = duckdb.connect(":memory:")
    register(connection)
    for setting in (
        "TimeZone = 'UTC'",
        "python_enable_replacements = false",
        "threads = 1",
        f"memory_limit = '{MEMORY}'",
        "temp_directory = ''",
        "enable_external_access = false",
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")
    return connection


def run(
    sql: str,
    tables: Mapping[str, pa.Table],
    seconds_max: float = 30.0,
    stopping: Stopping = NEVER,
) -> pa.Table:
    """The result of a query over these tables."""
    cursor, done = _database().cursor(), threading.Event()
    watcher = threading.Thread(target=_watch, args=(cursor, done, seconds_max, stopping))
    watcher.start()
    try:
        stopping.check()
        for name, table in tables.items():
            cursor.register(name, table)
        return cursor.sql(sql).to_arrow_table()
    except duckdb.InterruptException as error:
        stopping.check()
        raise LimitReached(
            f"the query took longer than {seconds_max:g} s",
            hint="ask for fewer rows, or raise query.seconds_max.",
        ) from error
    except duckdb.OutOfMemoryException as error:
        raise LimitReached(
            f"the query needs more than {MEMORY} of memory", hint="ask for fewer rows or groups."
        ) from error
    except duckdb.Error as error:
        raise BadQuery("the query cannot be answered", detail=str(error).splitlines()[0]) from error
    finally:
        done.set()
        watcher.join()
        cursor.close()


def _watch(
    cursor: duckdb.DuckDBPyConnection, done: threading.Event, seconds_max: float, stopping: Stopping
) -> None:
    """Interrupt a query that is stopped or takes too long, more than once: an interrupt that comes
    before the query has begun is forgotten.
    """
    deadline = time.monotonic() + seconds_max
    while not done.wait(min(_LOOK_S, seconds_max)):
        if stopping.stopped or time.monotonic() > deadline:
            cursor.interrupt()
