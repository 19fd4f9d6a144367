"""The audit: the merged answer and DuckDB's answer over the same events up to the same position,
compared.

Rows and position are read in one transaction; the events are the master's files up to that
position and the log's after them. Integers and texts must be equal, doubles to 1e-9 relative,
estimates within six standard errors. tests/audit/test_oracle.py checks that it finds nothing when
all is well, and each kind of defect when not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from headrace.audit.duck import oracle_sql
from headrace.compile.plan import WINDOW, Plan, StreamPlan, TablePlan, ViewPlan
from headrace.core.aggregate import HLL_ERROR
from headrace.core.errors import NotReady
from headrace.core.event import OFFSET, PARTITION, STATUS, Status
from headrace.core.position import Position, PositionRange
from headrace.define.functions import FunctionDefinition
from headrace.define.project import Project
from headrace.log.reader import TopicReader
from headrace.master.archive import declared_schema, decoder_of
from headrace.master.table import MasterTable, event_files
from headrace.serving.catalog import provisional, read_stream, tables_of
from headrace.serving.finish import typed_sql
from headrace.serving.sqlite_store import SqliteStore
from headrace.serving.store import AuditResult, StreamState

EXAMPLES = 5
ESTIMATE_TOLERANCE = 6 * HLL_ERROR


def audit_view(
    store: SqliteStore,
    state: Path,
    plan: Plan,
    name: str,
    project: Project,
    functions: Iterable[FunctionDefinition] = (),
) -> AuditResult:
    """Compare one view's answer with DuckDB's."""
    view, reached, answer, true = _answer(store, name)
    if not true:
        return AuditResult(view.name, len(answer), 0, note="the answer is provisional")
    connection = _connect(plan, view, reached, state, project.folder, functions)
    try:
        watermarks = reached.plan.watermarks(reached.highs)
        expected = connection.execute(oracle_sql(view, watermarks)).fetchall()
    finally:
        connection.close()
    return compare(view, answer, expected)


def _answer(store: SqliteStore, name: str) -> tuple[ViewPlan, StreamState, list[Any], bool]:
    """The view, how far it has come, its rows, and whether they are final for that place."""
    with store.db.read() as db:
        row = db.execute(
            "SELECT plan FROM _views WHERE name = ? AND state = 'live'", (name,)
        ).fetchone()
        if row is None:
            raise NotReady(f"view '{name}' is being built for the first time")
        plan = msgspec.json.decode(row[0], type=ViewPlan)
        whole = msgspec.structs.replace(plan, order=(), limit=None)
        rows = db.execute(typed_sql(whole, *tables_of(plan)[:2])).fetchall()
        return plan, read_stream(db, plan.stream), rows, not provisional(db, plan.recompute)


# DuckDB's side


def _connect(
    plan: Plan,
    view: ViewPlan,
    reached: StreamState,
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
    flow = reached.plan
    for stream, part in zip(flow.streams, flow.positions(reached.position), strict=True):
        _register_stream(connection, stream, part, state)
    return connection


def _register_stream(connection: Any, stream: StreamPlan, position: Position, state: Path) -> None:
    table = MasterTable(state / "master" / stream.name, declared_schema(stream), stream.partitions)
    archived, highs = table.progress()
    # Files that were archived meanwhile are passed over: their events are read from the log.
    cut = archived.earliest(position)
    paths = event_files(table.files(), PositionRange(Position.start(stream.partitions), cut))
    reader = TopicReader(state / "log" / stream.name)
    tail = f"_{stream.name}_tail"
    connection.register(tail, _tail(reader, stream, PositionRange(cut, position), highs))
    columns = ", ".join(_plain_time(name, type) for name, type, _ in stream.columns)
    hidden = f"{PARTITION}, {OFFSET}, make_timestamp(epoch_us(_arrived_at)) AS _arrived_at, _late"
    parts = [f'SELECT {columns}, {hidden} FROM "{tail}"']
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


# Comparison


def compare(view: ViewPlan, answer: Sequence[Any], expected: Sequence[Any]) -> AuditResult:
    """Count the rows that are on one side only or differ."""
    ours = _by_key(view, [_narrowed(view, row) for row in answer])
    theirs = _by_key(view, expected)
    found = [
        sentence
        for key in {**ours, **theirs}
        for pair in zip_longest(ours.get(key, ()), theirs.get(key, ()))
        if (sentence := _difference(view, *pair))
    ]
    return AuditResult(view.name, len(expected), len(found), tuple(found[:EXAMPLES]))


def _by_key(view: ViewPlan, rows: Sequence[Any]) -> dict[tuple[Any, ...], list[Any]]:
    """The rows of each key; where the answer does not show every key, several in the order of
    their values."""
    keys = [n for n, output in enumerate(view.outputs) if output.key]
    # Estimates come last, since rows that differ only in those must still find each other.
    order = sorted(range(len(view.outputs)), key=lambda n: view.outputs[n].estimate is not None)
    found: dict[tuple[Any, ...], list[Any]] = {}
    for row in sorted(rows, key=lambda row: [(row[n] is None, row[n] or 0) for n in order]):
        found.setdefault(tuple(row[n] for n in keys), []).append(row)
    return found


def _narrowed(view: ViewPlan, row: Sequence[Any]) -> tuple[Any, ...]:
    """The row with a window's end left out, as DuckDB gives it, and `_fresh` at the end."""
    values, narrow = iter(row), []
    for output in view.outputs:
        narrow.append(next(values))
        if output.type == WINDOW:
            next(values)
    return (*narrow, next(values))


def _difference(
    view: ViewPlan, ours: Sequence[Any] | None, theirs: Sequence[Any] | None
) -> str | None:
    if ours is None or theirs is None:
        shown, missing = (
            ours or theirs,
            "DuckDB has it" if ours is None else "DuckDB does not have it",
        )
        return f"{_shown(view, shown)}: {missing}"
    for n, output in enumerate(view.outputs):
        estimate = output.estimate == "always" or (output.estimate == "speed" and ours[-1])
        if not _equal(ours[n], theirs[n], ESTIMATE_TOLERANCE if estimate else None):
            return f"{_shown(view, ours)}: {output.name} is {ours[n]}, DuckDB says {theirs[n]}"
    return None


def _equal(ours: Any, theirs: Any, tolerance: float | None) -> bool:
    if ours is None or theirs is None or ours == theirs:
        return ours is theirs or bool(ours == theirs)
    if tolerance is not None:
        return bool(abs(ours - theirs) <= max(1.0, tolerance * theirs))
    if isinstance(ours, float) or isinstance(theirs, float):
        return bool(abs(ours - theirs) <= 1e-9 * max(abs(ours), abs(theirs), 1e-3))
    return bool(ours == theirs)


def _shown(view: ViewPlan, row: Sequence[Any] | None) -> str:
    values = zip(view.outputs, row or (), strict=False)
    return (
        ", ".join(f"{output.name}={value}" for output, value in values if output.key) or "the row"
    )
