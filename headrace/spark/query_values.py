"""The values of a result as JSON; the encoding of a value depends only on its Spark type.

Timestamps are ISO 8601 in UTC, clipped to the years 1 to 9999, a window is {"start", "end"}, a
decimal is a string so that no digit is lost, bytes are base64, and NaN or infinity, which JSON does
not have, is null. tests/spark/test_query_worker.py checks one value of each type.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from headrace.core.errors import BadDefinition
from headrace.core.json_value import number
from headrace.core.schema import Type
from headrace.core.time import DAY, iso
from headrace.log.plain_values import plain

_AS_TEXT = (t.AnsiIntervalType, t.CalendarIntervalType, t.VariantType, t.TimeType)


def type_name(spark_type: str) -> str:
    """The name of a Spark type in answers.

    >>> type_name("struct<Name:bigint>"), type_name("interval day")
    ('STRUCT<Name: BIGINT>', 'INTERVAL DAY')
    """
    try:
        return Type.parse(spark_type).spark
    except BadDefinition:
        return spark_type.upper()


def as_text_columns(frame: DataFrame) -> DataFrame:
    """Columns named by number, as names may repeat; types that Arrow lacks are cast to text."""
    numbered = frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))
    columns = (
        numbered[f"c{i}"].cast("string")
        if isinstance(field.dataType, _AS_TEXT)
        else numbered[f"c{i}"]
        for i, field in enumerate(frame.schema.fields)
    )
    return numbered.select(*columns)


def json_rows(table: pa.Table, schema: t.StructType) -> list[list[Any]]:
    """The rows of `table`; `schema` is the query's own."""
    columns = []
    for column, field in zip(table.columns, schema.fields, strict=True):
        write = writer(field.dataType)
        columns.append(
            [None if value is None else write(value) for value in plain(column).to_pylist()]
        )
    return [list(row) for row in zip(*columns, strict=True)]


def writer(kind: t.DataType) -> Callable[[Any], Any]:
    """The function that encodes a non-null value of this type."""
    if isinstance(kind, t.ArrayType):
        element = optional(kind.elementType)
        return lambda values: [element(value) for value in values]
    if isinstance(kind, t.MapType):
        key, value = writer(kind.keyType), optional(kind.valueType)
        return lambda pairs: {str(key(k)): value(v) for k, v in pairs}
    if isinstance(kind, t.StructType):
        fields = [(field.name, optional(field.dataType)) for field in kind.fields]
        return lambda values: {name: write(values[name]) for name, write in fields}
    return next(
        (write for known, write in _WRITERS if isinstance(kind, known)), lambda value: value
    )


def optional(kind: t.DataType) -> Callable[[Any], Any]:
    write = writer(kind)
    return lambda value: None if value is None else write(value)


_WRITERS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (t.TimestampType, iso),
    (t.TimestampNTZType, lambda us: iso(us).removesuffix("Z")),
    (t.DateType, lambda day: iso(day * DAY)[:10]),
    ((t.DoubleType, t.FloatType), number),
    (t.DecimalType, lambda value: f"{value:f}"),
    (t.BinaryType, lambda value: base64.b64encode(value).decode("ascii")),
)
