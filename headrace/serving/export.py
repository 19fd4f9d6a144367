"""All rows of a view in a file that other tools read: Parquet, CSV, or a table of SQLite or DuckDB.

A window is two columns, as in every table of an answer. Lists and objects are JSON texts. SQLite
has neither times nor decimals, so there they are texts too.
tests/serving/test_export.py reads each file back.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.certified.typed import quoted
from headrace.core.errors import BadRequest, Conflict
from headrace.core.time import iso
from headrace.serving.database import Database
from headrace.serving.read import Reader

SECONDS_MAX = 3_600.0
UTC = pa.timestamp("us", tz="UTC")


def export_view(db: Database, name: str, path: Path) -> int:
    """Write a view's rows; their number."""
    write = _WRITERS.get(path.suffix.lower())
    if write is None:
        raise BadRequest(
            f"'{path.name}' has no ending that says what to write",
            hint=f"endings are: {', '.join(_WRITERS)}.",
        )
    if path.exists():
        raise Conflict(f"'{path}' is there already", hint="name a new file.")
    table = exported(db, name)
    write(table, path, name)
    return int(table.num_rows)


def exported(db: Database, name: str) -> pa.Table:
    """All rows of a view, of one commit."""
    table, _ = Reader(db, seconds_max=SECONDS_MAX).table(name)
    columns: dict[str, Any] = {}
    for field, column in zip(table.schema, table.columns, strict=True):
        if pa.types.is_struct(field.type):
            whole = column.combine_chunks()
            for edge in ("start", "end"):
                columns[f"{field.name}_{edge}"] = whole.field(edge).cast(UTC)
        else:
            columns[field.name] = column.cast(UTC) if pa.types.is_timestamp(field.type) else column
    return pa.table(columns)


def with_zones(table: pa.Table) -> pa.Table:
    """The table with its times in UTC, as Spark takes them for moments."""
    for n, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(n, field.name, table.column(n).cast(UTC))
        elif pa.types.is_struct(field.type):
            window = pa.struct([("start", UTC), ("end", UTC)])
            table = table.set_column(n, field.name, table.column(n).cast(window))
    return table


def _parquet(table: pa.Table, path: Path, name: str) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, path)


def _csv(table: pa.Table, path: Path, name: str) -> None:
    from pyarrow import csv

    csv.write_csv(table, path)


def _duckdb(table: pa.Table, path: Path, name: str) -> None:
    import duckdb

    with duckdb.connect(str(path)) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("_rows", table)
        connection.execute(f"CREATE TABLE {quoted(name)} AS SELECT * FROM _rows")


def _sqlite(table: pa.Table, path: Path, name: str) -> None:
    columns = ", ".join(f"{quoted(field.name)} {_storage(field.type)}" for field in table.schema)
    places = ", ".join("?" * table.num_columns)
    values = [_plain(column) for column in table.columns]
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(f"CREATE TABLE {quoted(name)} ({columns})")
        rows = zip(*values, strict=True)
        connection.executemany(f"INSERT INTO {quoted(name)} VALUES ({places})", rows)
    connection.close()


def _storage(type: pa.DataType) -> str:
    if pa.types.is_integer(type) or pa.types.is_boolean(type):
        return "INTEGER"
    return "REAL" if pa.types.is_floating(type) else "TEXT"


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """The values as SQLite holds them."""
    if pa.types.is_timestamp(column.type):
        return [None if us is None else iso(us) for us in column.cast(pa.int64()).to_pylist()]
    if pa.types.is_date(column.type):
        return list(column.cast(pa.string()).to_pylist())
    return [f"{v:f}" if isinstance(v, Decimal) else v for v in column.to_pylist()]


_WRITERS: dict[str, Callable[[pa.Table, Path, str], None]] = {
    ".parquet": _parquet,
    ".csv": _csv,
    ".duckdb": _duckdb,
    ".sqlite": _sqlite,
}
