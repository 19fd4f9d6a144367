"""What is inside of lists, maps and objects: fields, elements, and rows made of elements.

A NULL inside is a value: two objects with a NULL in the same field are equal. Lists and objects
have an equality here and no order, because DuckDB puts a NULL inside after all values and Spark
before them. Maps have neither in Spark; as keys they are equal where their entries are, since they
are kept in the order of their keys. tests/certified compares each with Spark.
"""

from __future__ import annotations

from headrace.certified.casts import cast
from headrace.certified.typed import TypedSql, combine, not_available, quoted
from headrace.certified.types import INTEGERS, VOID, WINDOW, is_nested
from headrace.core.errors import BadQuery
from headrace.core.schema import Type


def type_of(value: TypedSql) -> Type | None:
    """The tree of a type; None where it is not a list, a map or an object."""
    return Type.of(value.type) if is_nested(value.type) and value.type != WINDOW else None


def field_of(value: TypedSql, name: str) -> TypedSql | None:
    """A field of an object, or of each object of a list; None if there is no such field."""
    if value.type == WINDOW:
        edge = name.lower()
        found = edge in {"start", "end"}
        return value.as_type(f'({value.sql})."{edge}"', "TIMESTAMP") if found else None
    type = type_of(value)
    if type is None or type.name == "MAP":
        return None
    of = type.element if type.name == "ARRAY" else type
    field = next((f for f in of.fields if f.name.lower() == name.lower()), None)
    if of.name != "STRUCT" or field is None:
        return None
    if type.name == "STRUCT":
        return value.as_type(f"({value.sql}).{quoted(field.name)}", field.type.spark)
    listed = f"[_e.{quoted(field.name)} for _e in ({value.sql})]"
    return value.as_type(listed, Type.array_of(field.type).spark)


def no_field(value: TypedSql, name: str) -> BadQuery:
    type = type_of(value)
    if type is None or type.name != "STRUCT":
        return BadQuery(f"a value of type {value.type} has no field '{name}'")
    names = ", ".join(field.name for field in type.fields)
    return BadQuery(f"there is no field '{name}'", detail=f"available fields: {names}.")


def subscript(value: TypedSql, index: TypedSql) -> TypedSql:
    """`value[index]`: an element of a list, counted from 0, or the value of a key; NULL where there
    is none.
    """
    type = type_of(value)
    if type is not None and type.name == "MAP":
        return entry(value, index)
    if type is None or type.name != "ARRAY":
        raise not_available(f"a subscript of {value.type}")
    place = _place(index)
    sql = f"CASE WHEN {place} >= 0 THEN list_extract({value.sql}, {place} + 1) END"
    return combine((value, index), sql, type.element.spark)


def entry(value: TypedSql, key: TypedSql) -> TypedSql:
    """The value of a key of a map."""
    type = Type.of(value.type)
    if key.type not in (type.key.spark, VOID) and not _widens(key.type, type.key.spark):
        raise not_available(f"a key of type {key.type} for {value.type}", "cast the key.")
    found = f"map_extract_value({value.sql}, {cast(key, type.key.spark).sql})"
    return combine((value, key), found, type.element.spark)


def element_at(value: TypedSql, index: TypedSql) -> TypedSql:
    """An element counted from 1, or from the end where the number is negative; or the value of a
    key.
    """
    type = type_of(value)
    if type is not None and type.name == "MAP":
        return entry(value, index)
    if type is None or type.name != "ARRAY":
        raise not_available(f"element_at of {value.type}")
    if index.literal is None or index.type not in INTEGERS:
        raise not_available("element_at with an index that is not a literal", "use x[i].")
    if int(index.literal) == 0:
        raise BadQuery("the index of element_at must not be 0: the first element is 1")
    return combine((value,), f"list_extract({value.sql}, {index.literal})", type.element.spark)


def _place(index: TypedSql) -> str:
    if index.type not in (*INTEGERS, VOID):
        raise not_available(f"an index of type {index.type}", "cast it to INT.")
    return f"CAST({index.sql} AS BIGINT)"


def _widens(source: str, target: str) -> bool:
    both = source in INTEGERS and target in INTEGERS
    return both and INTEGERS.index(source) < INTEGERS.index(target)


def exploded(value: TypedSql) -> tuple[str, list[str]]:
    """DuckDB's SELECT of the elements of a list, or of the entries of a map, and their types."""
    type = type_of(value)
    if type is None or type.name not in {"ARRAY", "MAP"}:
        raise not_available(f"explode of {value.type}")
    if type.name == "ARRAY":
        return f"SELECT unnest({value.sql}) AS _0", [type.element.spark]
    entries = f"SELECT unnest(map_entries({value.sql})) AS _e"
    items = "_e.key AS _0, _e.value AS _1"
    return f"SELECT {items} FROM ({entries})", [type.key.spark, type.element.spark]
