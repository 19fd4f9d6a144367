"""The audit: the merged answer and DuckDB's answer over the same events up to the same position,
compared.

Rows and position are read in one transaction; the events are the master's files up to that position
and the log's after them (audit/compare.py says when rows are the same). tests/audit/test_oracle.py
checks that it finds nothing in a correct answer, and each kind of defect.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from headrace.audit.aggregated import aggregated
from headrace.audit.compare import compare
from headrace.audit.duck import oracle_sql
from headrace.audit.duck_types import duck_columns, duck_type
from headrace.audit.events import register_stream
from headrace.audit.ordered import NotComparable
from headrace.audit.raw_json import register_raw_json
from headrace.audit.unsettled import evaluate, unsettled
from headrace.compile.plan import Plan, TablePlan, ViewPlan
from headrace.core.errors import NotReady
from headrace.define.functions import FunctionDefinition
from headrace.define.layout import Layout
from headrace.define.project import Project
from headrace.serving.catalog import live_plan
from headrace.serving.database import Transaction
from headrace.serving.database_store import DatabaseStore
from headrace.serving.progress import read_stream
from headrace.serving.read import ViewRows, read_view_columns
from headrace.serving.shed_epochs import read_shed_epochs
from headrace.serving.snapshot import is_provisional
from headrace.serving.store import AuditResult, ShedEpoch, StreamState


def audit_view(
    store: DatabaseStore,
    layout: Layout,
    plan: Plan,
    name: str,
    project: Project,
    functions: Iterable[FunctionDefinition] = (),
) -> AuditResult:
    """Compare one view's answer with DuckDB's."""
    view, reached, shed, answer, final = _answer(store, name)
    if not final:
        return AuditResult(view.name, 0, 0, note="not compared: the answer is provisional")
    with closing(connect(plan, view, project.folder, functions)) as connection:
        if reason := _not_evaluated(connection, view, reached, layout, shed):
            return AuditResult(view.name, 0, 0, note=f"not compared: {reason}")
        rows = unsettled(connection, view, answer.columns)
    found = compare(view, answer.rows(rows.answer), rows.expected)
    found = replace(found, compared=rows.total)
    many = sum(one.events for one in shed)
    note = f"sampled: without {many:,} events that speed has shed"
    return replace(found, note=note) if many else found


def _not_evaluated(
    connection: Any, view: ViewPlan, reached: StreamState, layout: Layout, shed: list[ShedEpoch]
) -> str:
    """Evaluate DuckDB's rows of a view; why that is not possible, empty if it is."""
    import duckdb

    flow = reached.plan
    watermark = flow.streams[0].watermark
    try:
        for stream, part in zip(flow.streams, flow.positions(reached.position), strict=True):
            register_stream(connection, stream, part, layout, shed)
        sql = oracle_sql(view, watermark[0] if watermark else None, reached.reached.marks)
        evaluate(connection, view, sql)
    except NotComparable as reason:
        return str(reason)
    except duckdb.Error as error:
        return f"DuckDB cannot evaluate it: {str(error).splitlines()[0]}"
    return ""


def _answer(
    store: DatabaseStore, name: str
) -> tuple[ViewPlan, StreamState, list[ShedEpoch], ViewRows, bool]:
    """The view, how far it has come, what was shed, its rows, and whether they are final there."""
    with store.read() as db:
        plan = aggregated(live_view(db, name))
        rows = read_view_columns(db, plan)
        stream = read_stream(db, plan.stream)
        shed = list(read_shed_epochs(db, plan.stream, stream.boundary))
        final = not is_provisional(db, plan.recompute)
        return plan, stream, shed, rows, final


def live_view(db: Transaction, name: str) -> ViewPlan:
    """The version of a view that answers."""
    plan = live_plan(db, name)
    if plan is None:
        raise NotReady(f"view '{name}' is being built for the first time")
    return plan


# DuckDB's side


def connect(
    plan: Plan, view: ViewPlan, folder: Path, functions: Iterable[FunctionDefinition]
) -> Any:
    """DuckDB with the functions and tables that a view needs, and no stream yet."""
    import duckdb

    connection = duckdb.connect(":memory:")
    register_raw_json(connection)
    for function in functions:
        _register(connection, function)
    for table in plan.tables:
        if table.name in view.tables:
            connection.execute(f'CREATE VIEW "{table.name}" AS {_table_sql(table, folder)}')
    return connection


def _table_sql(table: TablePlan, folder: Path) -> str:
    path = str((folder / table.location).resolve()).replace("'", "''")
    if table.format == "parquet":
        return f"SELECT * FROM read_parquet('{path}')"
    types = ", ".join(f"'{name}': '{type}'" for name, type in duck_columns(table.ddl).items())
    if table.format == "json":
        return f"SELECT * FROM read_json('{path}', columns = {{{types}}})"
    header = dict(table.options).get("header", "true")
    return f"SELECT * FROM read_csv('{path}', header = {header}, columns = {{{types}}})"


def _register(connection: Any, function: FunctionDefinition) -> None:
    takes, returns = [duck_type(type) for type in function.takes], duck_type(function.returns)
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
