"""The types of the values that a fold or a matcher reads from an event.

They compute with Python values, of fewer types than Spark has: a small integer becomes an INT, a
FLOAT a DOUBLE, and a timestamp without a zone one in UTC. Timestamps and dates are passed as
numbers.
"""

from __future__ import annotations

from headrace.core.errors import Unsupported
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


def carried_type(spark_type: str, sql: str, origin: Origin) -> Type:
    """The type of a value in a fold."""
    if spark_type in _TYPES:
        return Type(_TYPES[spark_type])
    if spark_type.startswith("decimal"):
        return Type.of(spark_type)
    if spark_type.startswith("array"):
        return Type.array_of(Type("STRING"))
    raise Unsupported(f"'{sql}' is of type {spark_type}, which cannot be carried", origin=origin)


def carried_sql(type: Type, sql: str) -> str:
    """Spark SQL of a value as it is passed to a fold."""
    return _FORMS.get(type.name, "({})" if " " in sql else "{}").format(sql)
