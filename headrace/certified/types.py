"""Spark's types as text, such as BIGINT or DECIMAL(18,2), and what DuckDB calls them.

`wider` and its siblings are Spark's implicit type rules (spark.sql.ansi.enabled = false).
"""

from __future__ import annotations

import re
from functools import lru_cache

from headrace.core.schema import Type

INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
BITS = dict(zip(INTEGERS, (8, 16, 32, 64), strict=True))
FLOATS = ("FLOAT", "DOUBLE")
TIMES = ("DATE", "TIMESTAMP")
NTZ, BINARY, VARIANT = "TIMESTAMP_NTZ", "BINARY", "VARIANT"
VOID, STRING, BOOLEAN, DOUBLE = "VOID", "STRING", "BOOLEAN", "DOUBLE"
WINDOW = "WINDOW"  # STRUCT<start: TIMESTAMP, end: TIMESTAMP>
DIGITS_MAX = 38
# Digits that a decimal needs to hold an integer type.
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}
_DUCK = {
    "STRING": "VARCHAR", "INT": "INTEGER", "VOID": "INTEGER", "BINARY": "BLOB",
    "TIMESTAMP_NTZ": "TIMESTAMP", "VARIANT": "VARCHAR",
    "WINDOW": 'STRUCT("start" TIMESTAMP, "end" TIMESTAMP)',
}  # fmt: skip


def decimal(digits: int, scale: int) -> str:
    """The type, bounded as Spark bounds results: digits before the point are kept first."""
    if digits <= DIGITS_MAX:
        return f"DECIMAL({digits},{scale})"
    kept = max(DIGITS_MAX - (digits - scale), min(scale, 6))
    return f"DECIMAL({DIGITS_MAX},{kept})"


def digits_of(type: str) -> tuple[int, int]:
    """Digits and scale of a decimal or integer type.

    >>> digits_of("DECIMAL(18,2)"), digits_of("INT")
    ((18, 2), (10, 0))
    """
    found = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", type)
    return (int(found[1]), int(found[2])) if found else (_DIGITS[type], 0)


def is_decimal(type: str) -> bool:
    return type.startswith("DECIMAL")


def is_numeric(type: str) -> bool:
    return type in INTEGERS or type in FLOATS or is_decimal(type)


def is_nested(type: str) -> bool:
    return type.startswith(("ARRAY<", "MAP<", "STRUCT<")) or type == WINDOW


def has_order(type: str) -> bool:
    """Whether values can be compared by <, and be the order of rows."""
    return type == WINDOW or not (is_nested(type) or type == VARIANT)


def has_equality(type: str) -> bool:
    """Whether values can be compared by =."""
    if type == VARIANT:
        return False
    return type == WINDOW or not is_nested(type) or not Type.of(type).has("MAP", VARIANT)


def can_group(type: str) -> bool:
    """Whether rows can be grouped by values; Spark takes maps of equal entries for one."""
    return type == WINDOW or not Type.of(type).has(VARIANT) if is_nested(type) else type != VARIANT


@lru_cache(maxsize=1_000)
def duck_type(type: str) -> str:
    """DuckDB's name for a type.

    >>> duck_type("MAP<STRING, ARRAY<STRUCT<a: BINARY>>>")
    'MAP(VARCHAR, STRUCT("a" BLOB)[])'
    """
    if type == WINDOW or not is_nested(type):
        return _DUCK.get(type, type)
    of = Type.of(type)
    match of.name:
        case "ARRAY":
            return f"{duck_type(of.element.spark)}[]"
        case "MAP":
            return f"MAP({duck_type(of.key.spark)}, {duck_type(of.element.spark)})"
    fields = (f"{_quoted(field.name)} {duck_type(field.type.spark)}" for field in of.fields)
    return f"STRUCT({', '.join(fields)})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def wider_number(a: str, b: str) -> str | None:
    """The numeric type that holds both."""
    if not (is_numeric(a) and is_numeric(b)):
        return None
    if "DOUBLE" in (a, b):
        return "DOUBLE"
    if "FLOAT" in (a, b):
        return "DOUBLE" if is_decimal(a) or is_decimal(b) else "FLOAT"
    if a in INTEGERS and b in INTEGERS:
        return max(a, b, key=INTEGERS.index)
    (digits_a, scale_a), (digits_b, scale_b) = digits_of(a), digits_of(b)
    scale = max(scale_a, scale_b)
    return decimal(max(digits_a - scale_a, digits_b - scale_b) + scale, scale)


def wider(a: str, b: str, *, text: bool = True) -> str | None:
    """The type of values that may be of either, as in CASE; with `text`, a value beside a text
    becomes text.
    """
    if a == b or b == VOID:
        return a
    if a == VOID:
        return b
    if number := wider_number(a, b):
        return number
    if {a, b} in (set(TIMES), {NTZ, "TIMESTAMP"}):
        return "TIMESTAMP"
    if {a, b} == {NTZ, "DATE"}:
        return NTZ
    if text and STRING in (a, b):
        other = b if a == STRING else a
        return STRING if is_numeric(other) or other in TIMES else None
    return None


def widest(types: list[str], *, text: bool = True) -> str | None:
    """The type that all of them become."""
    common: str | None = types[0]
    for type in types[1:]:
        common = wider(common, type, text=text) if common else None
    return common


def _readable(type: str) -> bool:
    """Whether a text beside a value of the type is read as one."""
    return not is_nested(type) and type not in (NTZ, BINARY, VARIANT)


def compared_as(a: str, b: str) -> str | None:
    """The type in which two values are compared: a text is read as the other's type."""
    if STRING in (a, b) and a != b:
        other = b if a == STRING else a
        if is_decimal(other):
            return DOUBLE
        return STRING if other == VOID else other if _readable(other) else None
    return wider(a, b)
