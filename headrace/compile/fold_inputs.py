"""The inputs of a fold or a matcher: the columns of its key, an event time, and values of events.

They compute with Python values, of fewer types than Spark has: a small integer becomes an INT, a
FLOAT a DOUBLE, and a timestamp without a zone one in UTC. Timestamps and dates are passed as
numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.compile.resolve import ResolvedQuery
from headrace.core.errors import UnknownColumn, Unsupported
from headrace.core.origin import Origin
from headrace.core.schema import Type

_TYPES = {
    "string": "STRING", "boolean": "BOOLEAN", "tinyint": "INT", "smallint": "INT", "int": "INT",
    "bigint": "BIGINT", "float": "DOUBLE", "double": "DOUBLE", "timestamp": "TIMESTAMP",
    "timestamp_ntz": "TIMESTAMP", "date": "DATE", "void": "INT",
}  # fmt: skip
_FORMS = {
    "TIMESTAMP": "unix_micros({})",
    "DATE": "unix_date({})",
    "BOOLEAN": "cast({} as int)",
    "DOUBLE": "cast({} as double)",
}


def declared_keys(
    resolved: ResolvedQuery, keys: Sequence[str], columns: Sequence[str]
) -> list[str]:
    """The key's columns, spelled as the stream below declares them."""
    declared = {column.lower(): column for column in columns if not column.startswith("_")}
    if missing := [key for key in keys if key.lower() not in declared]:
        raise UnknownColumn(
            f"stream '{resolved.definition.name}' is partitioned by a column that "
            f"'{resolved.stream}' does not have: '{missing[0]}'",
            detail=f"{resolved.stream} has: {', '.join(declared.values())}.",
            origin=resolved.definition.query_origin,
        )
    return [declared[key.lower()] for key in keys]


def require_event_time(resolved: ResolvedQuery, time: str | None) -> str:
    """The event time column; Unsupported if there is none, because a fold needs an order."""
    if time is None:
        raise Unsupported(
            f"stream '{resolved.definition.name}' requires its events in order, but stream "
            f"'{resolved.stream}' has no event time",
            hint="declare WATERMARK ts DELAY OF INTERVAL … in CREATE STREAM.",
            origin=resolved.definition.query_origin,
        )
    return time


def carried_type(spark_type: str, sql: str, origin: Origin) -> Type:
    """The type of a value in a fold."""
    if spark_type in _TYPES:
        return Type(_TYPES[spark_type])
    if spark_type.startswith("decimal"):
        return Type.of(spark_type)
    if spark_type.startswith("array"):
        return Type.array_of(Type("STRING"))
    raise Unsupported(
        f"'{sql}' has type {spark_type}, which is not supported in a stateful stream",
        origin=origin,
    )


def carried_sql(type: Type, sql: str) -> str:
    """Spark SQL of a value as it is passed to a fold."""
    return _FORMS.get(type.name, "({})" if " " in sql else "{}").format(sql)
