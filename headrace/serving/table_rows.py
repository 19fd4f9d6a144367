"""The rows of the project's tables, as read by Spark, for queries that join views with them.

They are written with the version of a table, in the transaction that records it, so an answer joins
with the version that `as_of` names. A table with more than `ROWS_MAX` rows is not stored; it can
only be joined with streams. tests/serving/test_table_rows.py checks both.
"""

from __future__ import annotations

import pyarrow as pa

from headrace.certified.relation import AnswerColumn, ReadRelation
from headrace.certified.typed import quoted
from headrace.core.errors import HeadraceError, NotReady, Unsupported
from headrace.serving.catalog import read_tables
from headrace.serving.checksums import check, checksum_of
from headrace.serving.database import Transaction
from headrace.serving.runs import encoded

ROWS_MAX = 200_000
_TYPES = {
    pa.string(): "STRING", pa.bool_(): "BOOLEAN", pa.int8(): "TINYINT", pa.int16(): "SMALLINT",
    pa.int32(): "INT", pa.int64(): "BIGINT", pa.float32(): "FLOAT", pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
}  # fmt: skip


def write_rows(db: Transaction, name: str, table: pa.Table | None) -> None:
    """Replace the stored rows of a table; none are stored if there are too many."""
    db.execute("DELETE FROM _table_rows WHERE name = ?", (name,))
    if table is None or table.num_rows > ROWS_MAX:
        return
    rows = encoded(table)
    db.execute("INSERT INTO _table_rows VALUES (?, ?, ?)", (name, rows, checksum_of((name,), rows)))


def read_rows(db: Transaction, name: str) -> pa.Table:
    sql = "SELECT rows, checksum FROM _table_rows WHERE name = ?"
    row = db.execute(sql, (name,)).fetchone()
    if row is None:
        raise _not_stored(db, name)
    rows, checksum = row
    check(checksum, (name,), rows, f"the rows of table '{name}'")
    return pa.ipc.open_stream(rows).read_all()


def _not_stored(db: Transaction, name: str) -> HeadraceError:
    if name not in read_tables(db):
        return NotReady(
            f"table '{name}' is not loaded yet", hint="repeat the query when the project is ready."
        )
    return Unsupported(
        f"table '{name}' cannot be joined with views: it has more than {ROWS_MAX:,} rows",
        hint="join it in the definition of a view over a stream.",
    )


def without_zone(table: pa.Table) -> pa.Table:
    """The rows for the reading engine, which has no time zones."""
    for n, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(n, field.name, table.column(n).cast(pa.timestamp("us")))
    return table


def relation_of(name: str, table: pa.Table) -> ReadRelation:
    """The table as a relation of the reading engine, without columns that it cannot read."""
    columns = [AnswerColumn(f.name, type) for f in table.schema if (type := _type(f.type))]
    return ReadRelation(quoted(name), tuple(columns))


def _type(type: pa.DataType) -> str | None:
    if pa.types.is_timestamp(type):
        return "TIMESTAMP" if type.tz else "TIMESTAMP_NTZ"
    if pa.types.is_decimal(type):
        return f"DECIMAL({type.precision},{type.scale})"
    return _TYPES.get(type)
