"""The computed columns of a stream in DuckDB, as far as DuckDB can compute them.

A view's definition has its computed columns written out; this is for queries over the records
themselves. A column that only Spark can compute is left out. tests/run/test_search.py searches by
one of each.
"""

from __future__ import annotations

from typing import Any

from sqlglot import ErrorLevel, exp

from headrace.audit import raw_json
from headrace.audit.duck import to_duckdb
from headrace.compile.plan import ColumnPlan, StreamPlan
from headrace.core.event import RAW
from headrace.core.origin import Origin
from headrace.define.dialect import parse_translatable


def register_computed(connection: Any, stream: StreamPlan, records: str, name: str) -> list[str]:
    """Register the records under another name, with their computed columns; returns those
    available.
    """
    computed = {
        column.name: sql
        for column in stream.columns
        if column.generated is not None and _known(connection, sql := _sql(column), records)
    }
    items = "".join(f', {sql} AS "{column}"' for column, sql in computed.items())
    connection.execute(f"CREATE VIEW {name} AS SELECT *{items} FROM {records}")
    return list(computed)


def _sql(column: ColumnPlan) -> str:
    """The value of a column, and NULL where DuckDB fails on a value."""
    text = f"SELECT CAST({column.generated} AS {column.type})"
    select = to_duckdb(parse_translatable(text, Origin("plan", 1)))
    value = select.expressions[0].transform(_raw_as_json)
    # DuckDB itself refuses what it does not support.
    return f"TRY({value.sql(dialect='duckdb', unsupported_level=ErrorLevel.IGNORE)})"


def _raw_as_json(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Column) and node.name.lower() == RAW:
        return exp.func(raw_json.NAME, node)
    return node


def _known(connection: Any, sql: str, records: str) -> bool:
    import duckdb

    try:
        connection.execute(f"EXPLAIN SELECT {sql} FROM {records}")
    except duckdb.Error:
        return False
    return True
