"""Exports all rows of a view to a file: Parquet, CSV, or a table of SQLite or DuckDB.

A window is two columns, as in every table of an answer. Parquet and DuckDB have the types of the
answer. In CSV lists and objects are JSON and bytes base64, and text that a spreadsheet would
evaluate is escaped, because the sender of events is not trusted; SQLite has neither times nor
decimals, so there they are texts too. tests/serving/test_export.py reads each file back.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.certified.typed import quoted
from headrace.compile.plan import WINDOW
from headrace.core.errors import BadRequest, Conflict
from headrace.core.shown_value import shown
from headrace.log.plain_values import plain
from headrace.serving.answer_table import csv_text
from headrace.serving.arrow_values import shown_type
from headrace.serving.database import Database
from headrace.serving.read import Reader

SECONDS_MAX = 3_600.0


def export_view(db: Database, name: str, path: Path) -> int:
    """Write a view's rows to a new file; returns how many."""
    write = _WRITERS.get(path.suffix.lower())
    if write is None:
        raise BadRequest(
            f"'{path.name}' does not have a supported file extension",
            hint=f"supported extensions: {', '.join(_WRITERS)}.",
        )
    if path.exists():
        raise Conflict(f"'{path}' already exists", hint="give the name of a new file.")
    table = view_table(db, name)
    write(table, path, name)
    return int(table.num_rows)


def view_table(db: Database, name: str) -> pa.Table:
    """All rows of a view, of one commit."""
    table, known, _ = Reader(db, seconds_max=SECONDS_MAX).table(name)
    columns: dict[str, Any] = {}
    for of, column in zip(known, table.columns, strict=True):
        if of.type == WINDOW:
            whole = column.combine_chunks()
            for edge in ("start", "end"):
                columns[f"{of.name}_{edge}"] = whole.field(edge)
        else:
            columns[of.name] = column
    return pa.table(columns)


def _parquet(table: pa.Table, path: Path, name: str) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, path)


def _csv(table: pa.Table, path: Path, name: str) -> None:
    from pyarrow import csv

    for n, field in enumerate(table.schema):
        column = table.column(n)
        if not (pa.types.is_primitive(field.type) or pa.types.is_decimal(field.type)):
            texts = [text if text is None else csv_text(text) for text in _plain(column)]
            column = pa.array(texts, pa.string())
        table = table.set_column(n, csv_text(field.name), column)
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
    """The values for SQLite: numbers, and everything else as in an answer."""
    type, values = shown_type(column.type), plain(column).to_pylist()
    found = [shown(type, value) for value in values]
    if type.nested:
        return [v if v is None else json.dumps(v, ensure_ascii=False) for v in found]
    return found


_WRITERS: dict[str, Callable[[pa.Table, Path, str], None]] = {
    ".parquet": _parquet,
    ".csv": _csv,
    ".duckdb": _duckdb,
    ".sqlite": _sqlite,
}
