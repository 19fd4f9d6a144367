"""Decoded events -> the JSON values that answers have, without Spark.

A value is written as its declared type asks, exactly as headrace/spark/query_values.py writes the
same type for Spark. tests/log/test_shown.py writes one of each, and
tests/run/test_following_spark.py compares them with Spark's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from headrace.core.json_value import moment, number
from headrace.core.schema import Schema, Type

_WRITERS: dict[str, Callable[[Any], Any]] = {
    "TIMESTAMP": moment,
    "DATE": lambda day: day.isoformat(),
    "DOUBLE": number,
}


def shown_rows(table: pa.Table, schema: Schema) -> list[dict[str, Any]]:
    """The declared columns of each event."""
    columns = [_column(table[column.name], column.type) for column in schema.columns]
    return [dict(zip(schema.names, values, strict=True)) for values in zip(*columns, strict=True)]


def _column(values: pa.ChunkedArray, type: Type) -> list[Any]:
    write = _WRITERS.get(type.name)
    if write is None:
        return list(values.to_pylist())
    one = _optional(write)
    each = _optional(lambda items: [one(item) for item in items]) if type.array else one
    return [each(value) for value in values.to_pylist()]


def _optional(write: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else write(value)
