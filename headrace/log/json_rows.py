"""Decoded events -> the JSON values that answers have, without Spark.

A value is written as its declared type asks, exactly as headrace/spark/query_values.py writes the
same type for Spark. tests/log/test_json_rows.py writes one of each, and
tests/run/test_stream_source_spark.py compares them with Spark's.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from headrace.core.json_value import number, timestamp
from headrace.core.schema import Schema, Type

_Write = Callable[[Any], Any]
_WRITERS: dict[str, _Write] = {
    "TIMESTAMP": timestamp,
    "TIMESTAMP_NTZ": lambda time: time.isoformat(),
    "DATE": lambda day: day.isoformat(),
    "FLOAT": number,
    "DOUBLE": number,
    "DECIMAL": lambda value: f"{value:f}",
    "BINARY": lambda value: base64.b64encode(value).decode("ascii"),
}


def json_rows(table: pa.Table, schema: Schema) -> list[dict[str, Any]]:
    """The declared columns of each event."""
    columns = [_column(table[column.name], column.type) for column in schema.columns]
    return [dict(zip(schema.names, values, strict=True)) for values in zip(*columns, strict=True)]


def _column(values: pa.ChunkedArray, type: Type) -> list[Any]:
    write = _writer(type)
    return [write(value) for value in values.to_pylist()]


def _writer(type: Type) -> _Write:
    """The function that writes a value of this type, or null."""
    match type.name:
        case "ARRAY":
            item = _writer(type.element)
            return _optional(lambda values: [item(value) for value in values])
        case "MAP":
            item = _writer(type.element)
            return _optional(lambda pairs: {key: item(value) for key, value in pairs})
        case "STRUCT":
            fields = [(field.name, _writer(field.type)) for field in type.fields]
            return _optional(lambda value: {name: write(value[name]) for name, write in fields})
    return _optional(_WRITERS[type.name]) if type.name in _WRITERS else lambda value: value


def _optional(write: _Write) -> _Write:
    return lambda value: None if value is None else write(value)
