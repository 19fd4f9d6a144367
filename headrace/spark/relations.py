"""The project's tables and functions, registered in a Spark session.

Tables are cached, because every epoch joins with them, and are read again by `reload`.
tests/spark/test_relations.py reads each format.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.compile.plan import TablePlan
from headrace.core.errors import NotFound
from headrace.define.functions import FunctionDefinition
from headrace.serving.table_rows import ROWS_MAX
from headrace.spark.functions import register_functions


def register(
    spark: Any, tables: Iterable[TablePlan], functions: Iterable[FunctionDefinition], folder: Path
) -> None:
    """Register tables and functions in a session."""
    register_functions(spark, functions)
    for table in tables:
        read_table(spark, table, folder).cache().createOrReplaceTempView(f"`{table.name}`")


def reload(spark: Any, table: TablePlan, folder: Path) -> None:
    """Read a table again."""
    # Spark's cache is shared between sessions, and its entries are known by path.
    spark.catalog.refreshByPath(str(table_path(table, folder)))
    frame = read_table(spark, table, folder).cache()
    frame.createOrReplaceTempView(f"`{table.name}`")
    frame.count()


def read_table(spark: Any, table: TablePlan, folder: Path) -> Any:
    path = table_path(table, folder)
    defaults = {"header": "true"} if table.format == "csv" else {}
    reader = spark.read.schema(table.ddl).options(**(defaults | dict(table.options)))
    return reader.format(table.format).load(str(path))


def small_table(spark: Any, folder: Path, table: TablePlan) -> pa.Table | None:
    """The rows of a table as Spark reads them; None if there are more than `ROWS_MAX`."""
    found = read_table(spark, table, folder).limit(ROWS_MAX + 1).toArrow()
    return found if found.num_rows <= ROWS_MAX else None


def table_path(table: TablePlan, folder: Path) -> Path:
    path = (folder / table.location).resolve()
    if not path.exists():
        raise NotFound(
            f"table '{table.name}' has no file at {table.location}",
            hint="LOCATION is relative to the project's folder.",
        )
    return path


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    """The rows of a small result, as tuples."""
    table = frame.toArrow()
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
