"""Merged rows, typed: the input of the reading engine.

A row has the keys of a view and the values of its aggregates; a window is a struct of its start and
end. Conditions on keys are applied before the merge. tests/serving/test_read.py compares the ways
to read.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa

from headrace.compile.plan import FRESH, WINDOW, CallPlan, KeyPlan, ViewPlan
from headrace.compile.windows import Span
from headrace.core.event import KEY
from headrace.core.position import Interval
from headrace.core.schema import Type, nested
from headrace.core.shown_value import shown
from headrace.core.storage import Storage
from headrace.log.plain_values import plain
from headrace.serving.arrow_values import engine_type
from headrace.serving.database import Transaction
from headrace.serving.engine import run
from headrace.serving.merge import GROUP, merge_sql, stored_rows, stored_schema, windows_sql
from headrace.serving.runs import Layer, read_rows

LAYERS = (Layer.GENERATION, Layer.SPEED)
STORED = "stored"  # the relation of stored rows
SECONDS_MAX = 600.0


def read_stored(
    db: Transaction,
    plan: ViewPlan,
    keys: Collection[str] | None = None,
    layers: Sequence[Layer] = LAYERS,
    groups: Interval | None = None,
) -> pa.Table:
    """The stored rows of a version with their groups, of all keys or some; speed's of all groups or
    some.
    """
    found = [grouped(stored_schema(plan).empty_table(), 0)]
    for layer in layers:
        some = groups if layer is Layer.SPEED else None
        rows = read_rows(db, plan.stored_name, layer, keys=keys, groups=some)
        found += [grouped(table, group if layer is Layer.SPEED else 0) for group, table in rows]
    return pa.concat_tables(found)


def grouped(rows: pa.Table, group: int) -> pa.Table:
    """Stored rows of one group."""
    return rows.append_column(GROUP, pa.array([group], pa.int64()).take(_zeros(rows.num_rows)))


def _zeros(count: int) -> pa.Array:
    return pa.array([0] * count, pa.int32()) if count else pa.array([], pa.int32())


def merged_stored(plan: ViewPlan, stored: pa.Table) -> pa.Table:
    """Stored rows merged into one per key; intervals that touch are merged."""
    sql = merge_sql(plan, f"SELECT * FROM {STORED}")
    found = run(windows_sql(plan, sql) if plan.joins else sql, {STORED: stored}, SECONDS_MAX)
    return stored_rows(plan, found)


def merged_rows(
    plan: ViewPlan, stored: pa.Table, where: str = "", span: Span | None = None
) -> pa.Table:
    """The merged rows of a view, from stored rows that meet a condition. With a `span`, only
    windows that start in it are needed.
    """
    rows = merge_sql(plan, f"SELECT * FROM {STORED}{f' WHERE {where}' if where else ''}")
    if plan.regroups:
        rows = windows_sql(plan, rows, span)
    sql = f"SELECT {', '.join(_items(plan))} FROM ({rows})"
    return _typed(plan, run(sql, {STORED: stored}, SECONDS_MAX))


def empty_row(plan: ViewPlan) -> pa.Table:
    """The merged row without events: every partial is NULL, which is the zero of every merge."""
    schema = stored_schema(plan).append(pa.field(GROUP, pa.int64()))
    row = pa.table([pa.nulls(1, field.type) for field in schema], schema=schema)
    return _typed(plan, run(f"SELECT {', '.join(_items(plan))} FROM {STORED}", {STORED: row}))


def _items(plan: ViewPlan) -> list[str]:
    keys = [item for key in plan.keys for item in _key_items(key)]
    calls = [item for call in plan.calls for item in _call_items(call)]
    key = [] if plan.regroups else [KEY]
    return [*keys, *calls, f"coalesce({GROUP}, 0) > 0 AS {FRESH}", *key]


def _call_items(call: CallPlan) -> list[str]:
    cut = [f"{call.cut} AS {call.cut_column}"] if call.cut else []
    return [f"{call.finish} AS {call.column}", *cut]


def _key_items(key: KeyPlan) -> list[str]:
    if key.type != WINDOW or key.window is None:
        return [key.column]
    return [key.column, f"{key.window.end(key.column)} AS {key.column}_end"]


def _typed(plan: ViewPlan, rows: pa.Table) -> pa.Table:
    """Rows of stored values as a table of typed ones."""
    columns = iter(rows.columns)
    arrays: dict[str, Any] = {}
    for key in plan.keys:
        arrays[key.column] = typed_column(key.type, next(columns))
        if key.type == WINDOW:
            edges = [arrays[key.column], typed_column(WINDOW, next(columns))]
            whole = [edge.combine_chunks() for edge in edges]
            arrays[key.column] = pa.StructArray.from_arrays(whole, ["start", "end"])
    for call in plan.calls:
        arrays[call.column] = typed_column(call.type, next(columns))
        if call.cut:
            arrays[call.cut_column] = next(columns)
    arrays[FRESH] = next(columns)
    if not plan.regroups:
        arrays[KEY] = next(columns)
    return pa.table(arrays)


def typed_column(type: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Stored values in the types of the reading engine."""
    wanted = engine_type("TIMESTAMP" if type == WINDOW else type)
    if pa.types.is_timestamp(wanted):
        return column.cast(pa.int64()).cast(wanted)
    if pa.types.is_date32(wanted):
        return column.cast(pa.int32()).cast(wanted)
    if pa.types.is_boolean(wanted):
        return column.cast(pa.int64()).cast(wanted) if not _is_bool(column) else column
    if pa.types.is_decimal(wanted) or pa.types.is_nested(wanted):
        read = Storage(Type.of(type)).read
        return pa.chunked_array([pa.array([read(x) for x in column.to_pylist()], wanted)])
    return column.cast(wanted, safe=not pa.types.is_float32(wanted))


def _is_bool(column: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_boolean(column.type))


def storage_rows(table: pa.Table, types: Sequence[str]) -> list[tuple[Any, ...]]:
    """Rows of an answer in storage form: times are numbers, a window has two columns, and a list or
    an object is the JSON text that an answer shows.
    """
    columns = [_values(type, column) for type, column in storage_columns(table, types)]
    return list(zip(*columns, strict=True)) if columns else []


def storage_columns(table: pa.Table, types: Sequence[str]) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """The columns of an answer in storage form, each with its type; lists and objects stay as they
    are.
    """
    for type, column in zip(types, table.columns, strict=False):
        if type == WINDOW:
            edges = column.combine_chunks()
            for n in (0, 1):
                yield "TIMESTAMP", plain(pa.chunked_array([edges.field(n)]))
        else:
            yield type, column if nested(type) else plain(column)


def _values(type: str, column: pa.ChunkedArray) -> list[Any]:
    values: list[Any] = plain(column).to_pylist()
    if not nested(type):
        return values
    of = Type.of(type)
    return [None if value is None else json.dumps(shown(of, value)) for value in values]
