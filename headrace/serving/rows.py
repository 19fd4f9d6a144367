"""Converts lifted rows to stored rows.

A stored row starts with `_key`, the key values as JSON: NULL is a key like any other. A column that
is not lifted, such as a count of distinct values, is filled in by the store.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pyarrow as pa

from headrace.compile.plan import ViewPlan
from headrace.core.event import KEY
from headrace.serving.merge import stored_schema


def stored_rows(plan: ViewPlan, lifted: pa.Table) -> pa.Table:
    """The stored rows of lifted rows."""
    schema, count = stored_schema(plan), lifted.num_rows
    names = set(lifted.column_names)
    columns = [
        lifted.column(field.name).cast(field.type) if field.name in names
        else pa.nulls(count, field.type)
        for field in schema
        if field.name != KEY
    ]  # fmt: skip
    return pa.table([keys_of(plan, lifted), *columns], schema=schema)


def keys_of(plan: ViewPlan, rows: pa.Table) -> pa.Array:
    """The key of each row as text."""
    values = [_json_values(rows.column(key.column)) for key in plan.keys]
    encode = msgspec.json.encode
    found = zip(*values, strict=True) if values else ([()] * rows.num_rows)
    return pa.array([encode(key).decode() for key in found], pa.string())


def _json_values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a key column for JSON, which has no infinite numbers."""
    values: list[Any] = column.to_pylist()
    if not pa.types.is_floating(column.type):
        return values
    return [str(x) if x is not None and not math.isfinite(x) else x for x in values]
