"""What a fold and a matcher take of an event: numbers, texts and truth values.

They compute with Python's values, of fewer types than Spark has: a small number becomes an INT, a
FLOAT a DOUBLE, and a time without a zone one in UTC. Times and dates go in as numbers.
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
    """The type in which a value is carried."""
    if spark_type in _TYPES:
        return Type(_TYPES[spark_type])
    if spark_type.startswith("decimal"):
        return Type.of(spark_type)
    if spark_type.startswith("array"):
        return Type.array_of(Type("STRING"))
    raise Unsupported(f"'{sql}' is of type {spark_type}, which cannot be carried", origin=origin)


def carried_form(type: Type, sql: str) -> str:
    """Spark SQL of the value as it goes in."""
    return _FORMS.get(type.name, "({})" if " " in sql else "{}").format(sql)
