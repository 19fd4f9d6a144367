"""Functions of lists and maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headrace.certified.casts import cast
from headrace.certified.function import Scalar, rows
from headrace.certified.nested import element_at, subscript, type_of
from headrace.certified.typed import TypedSql, combine, not_available
from headrace.certified.types import BOOLEAN, VOID, has_equality, has_order, is_decimal, widest
from headrace.core.schema import Type

CAST = "cast the value."  # the hint where types do not fit


def _size(given: Sequence[TypedSql]) -> TypedSql:
    """The size of NULL is -1, as in Spark without ANSI."""
    (value,) = given
    count = _count(value, "size")
    return value.as_type(f"CASE WHEN {value.sql} IS NULL THEN -1 ELSE {count} END", "INT")


def _array_size(given: Sequence[TypedSql]) -> TypedSql:
    return given[0].as_type(_count(_array(given[0], "array_size"), "array_size"), "INT")


def _count(value: TypedSql, name: str) -> str:
    type = type_of(value)
    if type is None or type.name == "STRUCT":
        raise not_available(f"{name} of {value.type}")
    counted = "cardinality" if type.name == "MAP" else "len"
    return f"CAST({counted}({value.sql}) AS INTEGER)"


def _array(value: TypedSql, name: str) -> TypedSql:
    type = type_of(value)
    if type is None or type.name != "ARRAY":
        raise not_available(f"{name} of {value.type}")
    return value


def _searched(name: str) -> Callable[[Sequence[TypedSql]], tuple[TypedSql, TypedSql, Type]]:
    """A list and a value, in one type; the value's equality is that of `=`."""

    def search(given: Sequence[TypedSql]) -> tuple[TypedSql, TypedSql, Type]:
        value, wanted = _array(given[0], name), given[1]
        element = Type.of(value.type).element
        common = widest([element.spark, wanted.type], text=False)
        if common != element.spark or wanted.type == VOID or not has_equality(common):
            raise not_available(f"{name} of {value.type} and {wanted.type}", CAST)
        return value, cast(wanted, common), element

    return search


def _array_contains(given: Sequence[TypedSql]) -> TypedSql:
    """NULL where it is not found among elements of which one is NULL."""
    value, wanted, _ = _searched("array_contains")(given)
    found = f"list_contains({value.sql}, {wanted.sql})"
    unknown = f"len({value.sql}) > list_count({value.sql})"
    sql = (
        f"CASE WHEN {value.sql} IS NULL OR {wanted.sql} IS NULL THEN NULL WHEN {found} THEN true "
        f"WHEN {unknown} THEN NULL ELSE false END"
    )
    return combine((value, wanted), sql, BOOLEAN)


def _array_position(given: Sequence[TypedSql]) -> TypedSql:
    """Counted from 1; 0 where it is not there."""
    value, wanted, element = _searched("array_position")(given)
    # Spark casts no decimal here, though it does so in `array_contains`.
    if is_decimal(given[1].type) and given[1].type != element.spark:
        raise not_available(f"array_position of {value.type} and {given[1].type}", CAST)
    place = f"CAST(coalesce(list_position({value.sql}, {wanted.sql}), 0) AS BIGINT)"
    known = f"{value.sql} IS NOT NULL AND {wanted.sql} IS NOT NULL"
    return combine((value, wanted), f"CASE WHEN {known} THEN {place} END", "BIGINT")


def _extreme(name: str, duck: str) -> Callable[[Sequence[TypedSql]], TypedSql]:
    def make(given: Sequence[TypedSql]) -> TypedSql:
        value = _array(given[0], name)
        element = Type.of(value.type).element.spark
        if not has_order(element):
            raise not_available(f"{name} of {value.type}")
        return value.as_type(f"{duck}({value.sql})", element)

    return make


def _of_map(name: str, part: str) -> Callable[[Sequence[TypedSql]], TypedSql]:
    def make(given: Sequence[TypedSql]) -> TypedSql:
        type = type_of(given[0])
        if type is None or type.name != "MAP":
            raise not_available(f"{name} of {given[0].type}")
        of = type.key if part == "keys" else type.element
        return given[0].as_type(f"map_{part}({given[0].sql})", Type.array_of(of).spark)

    return make


def _contains_key(given: Sequence[TypedSql]) -> TypedSql:
    keys = _of_map("map_contains_key", "keys")(given)
    return _array_contains([keys, given[1]])


ROWS = rows(
    Scalar("size", ("COLLECTION",), _size),
    Scalar("array_size", ("ARRAY",), _array_size),
    Scalar("array_contains", ("ARRAY", "ANY"), _array_contains),
    Scalar("array_position", ("ARRAY", "ANY"), _array_position),
    Scalar("array_max", ("ARRAY",), _extreme("array_max", "list_max")),
    Scalar("array_min", ("ARRAY",), _extreme("array_min", "list_min")),
    Scalar("element_at", ("COLLECTION", "ANY"), lambda given: element_at(*given)),
    Scalar("get", ("ARRAY", "INT"), lambda given: subscript(*given)),
    Scalar("map_keys", ("MAP",), _of_map("map_keys", "keys")),
    Scalar("map_values", ("MAP",), _of_map("map_values", "values")),
    Scalar("map_contains_key", ("MAP", "ANY"), _contains_key),
    also={"cardinality": "size", "try_element_at": "element_at"},
)
