"""The audit: the merged answer and DuckDB's answer over the same events up to the same position,
compared.

Rows and position are read in one transaction; the events are the master's files up to that
position and the log's after them (audit/compare.py says when rows are the same).
tests/audit/test_oracle.py checks that it finds nothing when all is well, and each kind of defect
when not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from headrace.audit.compare import compare
from headrace.audit.duck import oracle_sql
from headrace.compile.plan import Plan, StreamPlan, TablePlan, ViewPlan
from headrace.core.errors import NotReady
from headrace.core.event import OFFSET, PARTITION, STATUS, Status
from headrace.core.position import Position, PositionRange
from headrace.define.functions import FunctionDefinition
from headrace.define.project import Project
from headrace.log.reader import TopicReader
from headrace.master.archive import declared_schema, decoder_of
from headrace.master.table import MasterTable, event_files
from headrace.serving.catalog import read_stream, tables_of
from headrace.serving.finish import typed_sql
from headrace.serving.sqlite_store import SqliteStore
from headrace.serving.store import AuditResult


def audit_view(
    store: SqliteStore,
    state: Path,
    plan: Plan,
    name: str,
    project: Project,
    functions: Iterable[FunctionDefinition] = (),
) -> AuditResult:
    """Compare one view's answer with DuckDB's."""
    view, position, answer = _answer(store, name)
    connection = _connect(plan, view, position, state, project.folder, functions)
    try:
        watermark = plan.stream(view.stream).watermark
        sql = oracle_sql(view, watermark[0] if watermark else None)
        expected = connection.execute(sql).fetchall()
    finally:
        connection.close()
    return compare(view, answer, expected)


def _answer(store: SqliteStore, name: str) -> tuple[ViewPlan, Position, list[Any]]:
    with store.db.read() as db:
        row = db.execute(
            "SELECT plan FROM _views WHERE name = ? AND state = 'live'", (name,)
        ).fetchone()
        if row is None:
            raise NotReady(f"view '{name}' is being built for the first time")
        plan = msgspec.json.decode(row[0], type=ViewPlan)
        whole = msgspec.structs.replace(plan, order=(), limit=None)
        rows = db.execute(typed_sql(whole, *tables_of(plan)[:2])).fetchall()
        return plan, read_stream(db, plan.stream).position, rows


# DuckDB's side


def _connect(
    plan: Plan,
    view: ViewPlan,
    position: Position,
    state: Path,
    folder: Path,
    functions: Iterable[FunctionDefinition],
) -> Any:
    import duckdb

    connection = duckdb.connect(":memory:")
    for function in functions:
        _register(connection, function)
    for table in plan.tables:
        if table.name in view.tables:
            connection.execute(f'CREATE VIEW "{table.name}" AS {_table_sql(table, folder)}')
    _register_stream(connection, plan.stream(view.stream), position, state)
    return connection


def _register_stream(connection: Any, stream: StreamPlan, position: Position, state: Path) -> None:
    table = MasterTable(state / "master" / stream.name, declared_schema(stream), stream.partitions)
    archived, highs = table.progress()
    # Files that were archived meanwhile are passed over: their events are read from the log.
    cut = archived.earliest(position)
    paths = event_files(table.files(), PositionRange(Position.start(stream.partitions), cut))
    reader = TopicReader(state / "log" / stream.name)
    connection.register("_tail", _tail(reader, stream, PositionRange(cut, position), highs))
    columns = ", ".join(_plain_time(name, type) for name, type, _ in stream.columns)
    hidden = f"{PARTITION}, {OFFSET}, make_timestamp(epoch_us(_arrived_at)) AS _arrived_at, _late"
    parts = [f"SELECT {columns}, {hidden} FROM _tail"]
    if paths:
        files = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
        before = " OR ".join(
            f"({PARTITION} = {n} AND {OFFSET} < {offset})" for n, offset in enumerate(cut.offsets)
        )
        source = f"read_parquet([{files}], union_by_name = true, hive_partitioning = false)"
        parts.append(f"SELECT {columns}, {hidden} FROM {source} WHERE {before}")
    connection.execute(f'CREATE VIEW "{stream.name}" AS {" UNION ALL ".join(parts)}')


def _tail(
    reader: TopicReader, stream: StreamPlan, range: PositionRange, highs: Sequence[int | None]
) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    decoder = decoder_of(stream)
    parts = [
        decoder.decode(
            reader.blocks(partition, interval), partition, highs[partition], raw=False
        ).table
        for partition, interval in range.intervals()
    ]
    whole = pa.concat_tables(parts) if parts else decoder.arrow_schema(raw=False).empty_table()
    return whole.filter(pc.equal(whole[STATUS], int(Status.EVENT)))


def _plain_time(name: str, type: str) -> str:
    return f'make_timestamp(epoch_us("{name}")) AS "{name}"' if type == "TIMESTAMP" else f'"{name}"'


_DUCK_TYPES = {"STRING": "VARCHAR", "INT": "INTEGER"}


def _table_sql(table: TablePlan, folder: Path) -> str:
    path = str((folder / table.location).resolve()).replace("'", "''")
    if table.format == "parquet":
        return f"SELECT * FROM read_parquet('{path}')"
    pairs = [column.strip().split("` ") for column in table.ddl.split(", ")]
    types = ", ".join(
        f"'{name.strip('`')}': '{_DUCK_TYPES.get(type, type)}'" for name, type in pairs
    )
    if table.format == "json":
        return f"SELECT * FROM read_json('{path}', columns = {{{types}}})"
    header = dict(table.options).get("header", "true")
    return f"SELECT * FROM read_csv('{path}', header = {header}, columns = {{{types}}})"


def _register(connection: Any, function: FunctionDefinition) -> None:
    takes = [_DUCK_TYPES.get(t.name, t.name) for t in function.takes]
    returns = _DUCK_TYPES.get(function.returns.name, function.returns.name)
    body = function.body if function.kind == "arrow" else _with_pandas(function.body)
    connection.create_function(
        function.name,
        body,
        takes,
        returns,
        type="arrow",
        null_handling="special",
        exception_handling="default",
    )


def _with_pandas(body: Any) -> Any:
    def call(*columns: Any) -> Any:
        import pyarrow as pa

        return pa.Array.from_pandas(body(*(column.to_pandas() for column in columns)))

    return call
