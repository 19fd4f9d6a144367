"""Merged rows: what the store gives to the reading engine, as Arrow.

A row has the keys of a view and the values of its aggregates, typed; a window is a struct of its
two edges. Conditions on keys go inside, to the indexes of both tables, before anything is merged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from headrace.compile.plan import FRESH, WINDOW, CallPlan, KeyPlan, ViewPlan
from headrace.compile.windows import Span
from headrace.core.schema import Type, nested
from headrace.core.shown_value import shown
from headrace.core.storage import Storage
from headrace.serving.arrow_values import engine_type, plain
from headrace.serving.database import Transaction
from headrace.serving.merge import in_windows, merged, source

KEY = "_key"  # what a stored row is known by, where the rows of an answer are the stored ones


def merged_sql(
    plan: ViewPlan, generation: str, speed: str, where: str = "", span: Span | None = None
) -> str:
    """The store's SELECT of a view's merged rows. With a `span`, only windows that begin in it are
    of interest.
    """
    key = not plan.regroups
    sources = [
        source(plan, generation, group="0", where=where, key=key),
        source(plan, speed, group="_group", where=where, key=key),
    ]
    rows = merged(plan, [in_windows(plan, rows, span) for rows in sources], key=key)
    return f"SELECT {', '.join(_items(plan))} FROM ({rows})"


def _items(plan: ViewPlan) -> list[str]:
    keys = [item for key in plan.keys for item in _key_items(key)]
    calls = [item for call in plan.calls for item in _call_items(call)]
    key = [] if plan.regroups else [KEY]
    return [*keys, *calls, f"coalesce(_group, 0) > 0 AS {FRESH}", *key]


def cut_column(call: str) -> str:
    """The column that is true where the list of an aggregate was cut at its limit."""
    return f"{call}_cut"


def _call_items(call: CallPlan) -> list[str]:
    cut = [f"{call.cut} AS {cut_column(call.column)}"] if call.cut else []
    return [f"{call.finish} AS {call.column}", *cut]


def _key_items(key: KeyPlan) -> list[str]:
    if key.type != WINDOW or key.window is None:
        return [key.column]
    return [key.column, f"{key.window.end(key.column)} AS {key.column}_end"]


def nothing(db: Transaction, plan: ViewPlan) -> pa.Table:
    """The merged row of no events: every partial is NULL, which is the zero of every merge."""
    columns = [key.column for key in plan.keys]
    columns += [column for partial in plan.partials for column in partial.columns]
    row = ", ".join(f"NULL AS {column}" for column in [*columns, "_group", KEY])
    return arrow(plan, db.execute(f"SELECT {', '.join(_items(plan))} FROM (SELECT {row})"))


def arrow(plan: ViewPlan, rows: Iterable[Sequence[Any]]) -> pa.Table:
    """Rows of `merged_sql` as a table."""
    width = len(_items(plan))
    columns = iter(list(zip(*rows, strict=True)) or [()] * width)
    arrays: dict[str, pa.Array] = {}
    for key in plan.keys:
        arrays[key.column] = array(key.type, next(columns))
        if key.type == WINDOW:
            edges = [arrays[key.column], array(WINDOW, next(columns))]
            arrays[key.column] = pa.StructArray.from_arrays(edges, ["start", "end"])
    for call in plan.calls:
        arrays[call.column] = array(call.type, next(columns))
        if call.cut:
            arrays[cut_column(call.column)] = array("BOOLEAN", next(columns))
    arrays[FRESH] = array("BOOLEAN", next(columns))
    if not plan.regroups:
        arrays[KEY] = array("STRING", next(columns))
    return pa.table(arrays)


def array(type: str, values: Sequence[Any]) -> pa.Array:
    """Stored values as the reading engine takes them."""
    if type == WINDOW:
        type = "TIMESTAMP"
    read, arrow = Storage(Type.of(type)).read, engine_type(type)
    if pa.types.is_timestamp(arrow):
        return pa.array(values, pa.int64()).view(arrow)
    if pa.types.is_date32(arrow):
        return pa.array(values, pa.int32()).view(arrow)
    if pa.types.is_integer(arrow) or pa.types.is_string(arrow) or pa.types.is_binary(arrow):
        return pa.array(values, arrow)
    return pa.array([read(value) for value in values], arrow)


def stored(table: pa.Table, types: Sequence[str]) -> list[tuple[Any, ...]]:
    """Rows of an answer with times as numbers; a window takes two places, and a list or an object
    is the JSON text of what an answer shows.
    """
    columns = [c for n, type in enumerate(types) for c in _stored(table.column(n), type)]
    return list(zip(*columns, strict=True)) if columns else []


def _stored(column: pa.ChunkedArray, type: str) -> list[list[Any]]:
    if type == WINDOW:
        whole = column.combine_chunks()
        return [_stored(pa.chunked_array([whole.field(n)]), "TIMESTAMP")[0] for n in (0, 1)]
    values = plain(column).to_pylist()
    if not nested(type):
        return [values]
    of = Type.of(type)
    return [[None if value is None else json.dumps(shown(of, value)) for value in values]]
