"""DuckDB in the process of a task, over relations that are passed to it.

Spark runs as many tasks as there are cores, so a task uses one thread. tests/kernel/test_engine.py
tries to reach a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import duckdb
import pyarrow as pa

from headrace.certified.connection import isolated_connection
from headrace.certified.lifts import register_lifts
from headrace.core.errors import EngineFailed

_MEMORY = "2GB"


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    connection = isolated_connection(_MEMORY)
    register_lifts(connection)
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
