"""DuckDB in the process of a task: one connection, one thread, nothing but the given relations.

Spark runs as many tasks as there are cores, so a task takes one. tests/kernel/test_engine.py tries
to reach a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import duckdb
import pyarrow as pa

from headrace.certified.lifts import register_lifts
from headrace.certified.udf import register
from headrace.core.errors import EngineFailed

_MEMORY = "2GB"


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:")
    register(connection)
    register_lifts(connection)
    for setting in (
        "TimeZone = 'UTC'",
        "python_enable_replacements = false",
        "threads = 1",
        f"memory_limit = '{_MEMORY}'",
        "temp_directory = ''",
        "enable_external_access = false",
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")
    return connection


def run_kernel(sql: str, relations: Mapping[str, pa.Table]) -> pa.Table:
    """The result of a kernel's SQL over these relations."""
    cursor = _connection().cursor()
    try:
        for name, rows in relations.items():
            cursor.register(name, rows)
        return cursor.sql(sql).to_arrow_table()
    except duckdb.Error as error:
        detail = str(error).splitlines()[0]
        raise EngineFailed("the vectorised kernel failed", detail=detail) from error
    finally:
        cursor.close()
