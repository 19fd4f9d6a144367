"""DuckDB's names of the declared types. A VARIANT is the JSON text that log and master have."""

from __future__ import annotations

from headrace.core.schema import Type

_NAMES = {
    "STRING": "VARCHAR", "INT": "INTEGER", "BINARY": "BLOB", "TIMESTAMP_NTZ": "TIMESTAMP",
    "VARIANT": "VARCHAR",
}  # fmt: skip


def duck_type(type: Type) -> str:
    """
    >>> duck_type(Type.parse("MAP<STRING, ARRAY<STRUCT<a: BINARY>>>"))
    'MAP(VARCHAR, STRUCT("a" BLOB)[])'
    """
    match type.name:
        case "ARRAY":
            return f"{duck_type(type.element)}[]"
        case "MAP":
            return f"MAP(VARCHAR, {duck_type(type.element)})"
        case "STRUCT":
            fields = (f'"{field.name}" {duck_type(field.type)}' for field in type.fields)
            return f"STRUCT({', '.join(fields)})"
    return _NAMES.get(type.name, type.spark)


def duck_columns(ddl: str) -> dict[str, str]:
    """The columns of a table and their types, from the DDL that Spark gets.

    >>> duck_columns("`a` STRING, `b` MAP<STRING, INT>")
    {'a': 'VARCHAR', 'b': 'MAP(VARCHAR, INTEGER)'}
    """
    # As the fields of a struct, in which a VARIANT cannot be.
    whole = Type.parse(f"STRUCT<{ddl.replace('` VARIANT', '` STRING')}>")
    return {field.name: duck_type(field.type) for field in whole.fields}
