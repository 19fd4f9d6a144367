"""The audit: the merged answer and DuckDB's answer over the same events up to the same position,
compared.

Rows and position are read in one transaction; the events are the master's files up to that
position and the log's after them. Integers and texts must be equal, doubles to 1e-9 relative,
estimates within six standard errors. tests/audit/test_oracle.py checks that it finds nothing when
all is well, and each kind of defect when not.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from headrace.audit.duck import oracle_sql
from headrace.audit.events import register_stream
from headrace.compile.plan import WINDOW, OutputPlan, Plan, TablePlan, ViewPlan
from headrace.core.errors import NotReady
from headrace.core.position import Position
from headrace.core.schema import nested
from headrace.define.functions import FunctionDefinition
from headrace.define.project import Project
from headrace.serving.catalog import read_stream, tables_of
from headrace.serving.finish import typed_sql
from headrace.serving.shed import shed_epochs
from headrace.serving.sqlite_store import SqliteStore
from headrace.serving.states.shown import shown
from headrace.serving.store import AuditResult, Shed

EXAMPLES = 5
ERRORS_MAX = 6  # standard errors that an estimate may be off


def audit_view(
    store: SqliteStore,
    state: Path,
    plan: Plan,
    name: str,
    project: Project,
    functions: Iterable[FunctionDefinition] = (),
) -> AuditResult:
    """Compare one view's answer with DuckDB's."""
    view, position, shed, answer = _answer(store, name)
    connection = connect(plan, view, project.folder, functions)
    try:
        register_stream(connection, plan.stream(view.stream), position, state, shed)
        watermark = plan.stream(view.stream).watermark
        sql = oracle_sql(view, watermark[0] if watermark else None)
        expected = connection.execute(sql).fetchall()
    finally:
        connection.close()
    many = sum(one.events for one in shed)
    note = f"sampled: without {many:,} events that speed has passed over" if many else ""
    return replace(compare(view, answer, expected), note=note)


def _answer(store: SqliteStore, name: str) -> tuple[ViewPlan, Position, list[Shed], list[Any]]:
    with store.db.read() as db:
        plan = live_view(db, name)
        whole = msgspec.structs.replace(plan, order=(), limit=None)
        rows = db.execute(typed_sql(whole, *tables_of(plan)[:2])).fetchall()
        stream = read_stream(db, plan.stream)
        shed = list(shed_epochs(db, plan.stream, stream.boundary))
        return plan, stream.position, shed, rows


def live_view(db: sqlite3.Connection, name: str) -> ViewPlan:
    """The version of a view that answers."""
    row = db.execute(
        "SELECT plan FROM _views WHERE name = ? AND state = 'live'", (name,)
    ).fetchone()
    if row is None:
        raise NotReady(f"view '{name}' is being built for the first time")
    return msgspec.json.decode(row[0], type=ViewPlan)


# DuckDB's side


def connect(
    plan: Plan, view: ViewPlan, folder: Path, functions: Iterable[FunctionDefinition]
) -> Any:
    """DuckDB with the functions and tables that a view needs, and no stream yet."""
    import duckdb

    connection = duckdb.connect(":memory:")
    for function in functions:
        _register(connection, function)
    for table in plan.tables:
        if table.name in view.tables:
            connection.execute(f'CREATE VIEW "{table.name}" AS {_table_sql(table, folder)}')
    return connection


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
    ours = _by_key(view, [narrowed(view, row) for row in answer])
    theirs = _by_key(view, [_as_told(view, narrowed(view, row)) for row in expected])
    found = [
        sentence
        for key in {**ours, **theirs}
        for pair in zip_longest(ours.get(key, ()), theirs.get(key, ()))
        if (sentence := _difference(view, *pair))
    ]
    return AuditResult(view.name, len(expected), len(found), tuple(found[:EXAMPLES]), _note(view))


def _note(view: ViewPlan) -> str:
    rough = [output.name for output in view.outputs if not _comparable(output)]
    return f"not compared, being estimates: {', '.join(rough)}" if rough else ""


def _comparable(output: OutputPlan) -> bool:
    """Whether the error of an estimate, if it is one, tells how far values may be apart."""
    return output.estimate is None or output.estimate.of == "value"


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


def narrowed(view: ViewPlan, row: Sequence[Any]) -> tuple[Any, ...]:
    """The row with a window's two edges as one value, and what follows the outputs."""
    values, narrow = iter(row), []
    for output in view.outputs:
        value = next(values)
        if output.type == WINDOW:
            value = (value, next(values))
        elif nested(output.type) and isinstance(value, str):
            value = _list_text(value)
        narrow.append(value)
    return (*narrow, *values)


def _list_text(value: str) -> str:
    """The JSON of a list, whether or not it was cut."""
    read = json.loads(value)
    return json.dumps(read.get("cut", read) if isinstance(read, dict) else read)


def _as_told(view: ViewPlan, row: Sequence[Any]) -> tuple[Any, ...]:
    """DuckDB's row with lists and objects as JSON, as an answer shows them."""
    told = []
    for output, value in zip(view.outputs, row, strict=True):
        if isinstance(value, list):
            element = output.type.removeprefix("ARRAY<").removesuffix(">")
            value = json.dumps([shown(element, item) for item in value])
        told.append(json.dumps(value) if isinstance(value, dict) else value)
    return tuple(told)


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
        estimate = output.estimate
        rough = estimate and (estimate.when == "always" or ours[-1])
        tolerance = ERRORS_MAX * estimate.error if estimate and rough else None
        if _comparable(output) and not _equal(ours[n], theirs[n], tolerance):
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
