"""A DuckDB connection that can reach nothing but the relations it is given: no file, no network, no
setting. Its memory is bounded, and it uses one thread.

tests/serving/test_engine.py and tests/kernel/test_engine.py try to get out.
"""

from __future__ import annotations

import duckdb

from headrace.certified.udf import register


def isolated_connection(memory: str) -> duckdb.DuckDBPyConnection:
    """An empty database with the functions of certified SQL."""
    connection = duckdb.connect(":memory:")
    register(connection)
    for setting in (
        "TimeZone = 'UTC'",
        "python_enable_replacements = false",
        "threads = 1",
        f"memory_limit = '{memory}'",
        "temp_directory = ''",
        "enable_external_access = false",
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")
    return connection
