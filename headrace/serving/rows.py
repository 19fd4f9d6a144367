"""Converts lifted rows to stored rows.

A stored row starts with `_key`, the key values as JSON: NULL is a key like any other. A column that
is not lifted, such as a count of distinct values, is filled in by the store.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

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
    if not plan.keys:
        return pa.array(["[]"] * rows.num_rows, pa.string())
    texts = [_json_texts(rows.column(key.column)) for key in plan.keys]
    joined = pc.binary_join_element_wise(*texts, ",")
    return pc.binary_join_element_wise("[", joined, "]", "")


def _json_texts(column: pa.ChunkedArray) -> pa.Array:
    """Each value as JSON; a value that stands many times is encoded once."""
    found = column.combine_chunks().dictionary_encode(null_encoding="encode")
    texts = [msgspec.json.encode(_finite(value)).decode() for value in found.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(found.indices)


def _finite(value: Any) -> Any:
    """JSON has no infinite numbers."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
