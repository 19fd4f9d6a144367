"""Casts as Spark makes them (spark.sql.ansi.enabled = false): a value that does not fit is NULL, an
integer wraps, a double is cut at the integer's limits. `cast` is the only way by which a value
changes its type.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.certified.typed import OUTSIDE_CALENDAR, TypedSql, not_available, text_literal
from headrace.certified.types import (
    BINARY,
    BITS,
    BOOLEAN,
    DOUBLE,
    FLOATS,
    INTEGERS,
    NTZ,
    STRING,
    TIMES,
    VARIANT,
    VOID,
    digits_of,
    duck_type,
    is_decimal,
    is_nested,
    is_numeric,
)
from headrace.certified.udf import null_safe, spark_date, spark_timestamp

# What Spark takes away from both ends of a text before it reads a number.
BLANKS = "chr(9)||chr(10)||chr(11)||chr(12)||chr(13)||chr(28)||chr(29)||chr(30)||chr(31)||' '"
_TRUE = "('t', 'true', 'y', 'yes', '1')"
_FALSE = "('f', 'false', 'n', 'no', '0')"
_FLOAT_LIMIT = "CAST(3.4028235677973366e38 AS DOUBLE)"  # the least that rounds to infinity
_PLAIN_SCALE = 6  # Java writes decimals of more places with an exponent where they are small
_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"


def cast(value: TypedSql, target: str) -> TypedSql:
    """The value in another type; refused where no form is certified."""
    if value.type == target:
        return value
    if value.type == VOID:
        return value.as_type(f"CAST(NULL AS {duck_type(target)})", target)
    sql = _cast(value, target)
    if sql is None:
        raise not_available(f"a cast of {value.type} to {target}")
    made = value.as_type(sql, target)
    known = value.type != STRING or target not in TIMES or _in_calendar(value.literal, target)
    return made if known else replace(made, deviation=OUTSIDE_CALENDAR)


def _in_calendar(literal: str | None, target: str) -> bool:
    read = {"DATE": spark_date, "TIMESTAMP": spark_timestamp}[target]
    return null_safe(read)(literal) is not None


def _cast(value: TypedSql, target: str) -> str | None:
    x, source = value.sql, value.type
    if is_nested(source) or is_nested(target) or {source, target} & {BINARY, VARIANT}:
        return None
    if NTZ in (source, target):
        return _local_time(x, source, target)
    if source == STRING:
        return _from_text(x, target)
    if target == STRING:
        return _to_text(x, source)
    if target == BOOLEAN:
        return f"({x} <> 0)" if is_numeric(source) else None
    if source == BOOLEAN:
        return f"CAST({x} AS {duck_type(target)})" if is_numeric(target) else None
    if source in TIMES or target in TIMES:
        return _time(x, source, target)
    return _number(x, source, target)


def _number(x: str, source: str, target: str) -> str | None:
    if target in INTEGERS:
        return _to_integer(x, source, target)
    if is_decimal(target) and source in FLOATS:
        digits, scale = digits_of(target)
        return f"TRY_CAST(spark_decimal(CAST({x} AS DOUBLE), {digits}, {scale}) AS {target})"
    if is_decimal(target):
        return f"TRY_CAST({x} AS {target})"
    if target == "FLOAT" and source == DOUBLE:
        return _to_float(x)
    return f"CAST({x} AS {target})" if target in FLOATS else None


def _to_float(x: str) -> str:
    """A double that is too large is infinite."""
    infinite = f"CASE WHEN {x} > 0 THEN 'inf' ELSE '-inf' END"
    return (
        f"CASE WHEN isfinite({x}) AND abs({x}) >= {_FLOAT_LIMIT} "
        f"THEN CAST({infinite} AS FLOAT) ELSE CAST({x} AS FLOAT) END"
    )


def _to_integer(x: str, source: str, target: str) -> str:
    if source in INTEGERS:
        widens = BITS[target] > BITS[source]
        return f"CAST({x} AS {duck_type(target)})" if widens else wrapped(x, target)
    if is_decimal(source):
        return wrapped(f"CAST(trunc({x}) AS HUGEINT)", target)
    if BITS[target] < 32:
        return wrapped(_to_integer(x, source, "INT"), target)
    low, high = -(2 ** (BITS[target] - 1)), 2 ** (BITS[target] - 1) - 1
    # The limits are compared as doubles, which hold them or the next power of two.
    return (
        f"CASE WHEN isnan({x}) THEN 0 WHEN {x} >= CAST({high} AS DOUBLE) THEN {high} "
        f"WHEN {x} <= CAST({low} AS DOUBLE) THEN {low} "
        f"ELSE TRY_CAST(trunc({x}) AS {duck_type(target)}) END"
    )


def wrapped(x: str, target: str) -> str:
    """An integer of any size as the low bits that its type keeps, as Java does."""
    bits = BITS[target]
    mask, sign = f"CAST({2**bits - 1} AS HUGEINT)", f"CAST({2 ** (bits - 1)} AS HUGEINT)"
    return f"CAST(xor(CAST({x} AS HUGEINT) & {mask}, {sign}) - {sign} AS {duck_type(target)})"


def _from_text(x: str, target: str) -> str | None:
    trimmed = f"trim({x}, {BLANKS})"
    if target in INTEGERS:
        # What stands after a point is cut off, and a point alone is zero.
        number = f"regexp_full_match({trimmed}, '[+-]?([0-9]+|[0-9]*\\.[0-9]*)')"
        whole = f"regexp_replace({trimmed}, '^([+-]?)([0-9]*).*$', '\\1' || '0' || '\\2')"
        return f"CASE WHEN {number} THEN TRY_CAST({whole} AS {duck_type(target)}) END"
    if target in FLOATS:
        return _text_to_double(trimmed, target)
    if is_decimal(target):
        number = f"regexp_full_match({trimmed}, {text_literal(_NUMBER)})"
        return f"CASE WHEN {number} THEN TRY_CAST({trimmed} AS {target}) END"
    if target == BOOLEAN:
        word = f"lower({trimmed})"
        return f"CASE WHEN {word} IN {_TRUE} THEN true WHEN {word} IN {_FALSE} THEN false END"
    if target in TIMES:
        return f"spark_{target.lower()}({x})"
    return None


def _text_to_double(trimmed: str, target: str) -> str:
    word = f"lower({trimmed})"
    return (
        f"CASE WHEN regexp_full_match({trimmed}, {text_literal(_NUMBER + '[dDfF]?')}) "
        f"THEN TRY_CAST(rtrim({trimmed}, 'dDfF') AS {target}) "
        f"WHEN {word} IN ('nan', '+nan', '-nan') THEN CAST('nan' AS {target}) "
        f"WHEN {word} IN ('inf', '+inf', 'infinity', '+infinity') THEN CAST('inf' AS {target}) "
        f"WHEN {word} IN ('-inf', '-infinity') THEN CAST('-inf' AS {target}) END"
    )


def _to_text(x: str, source: str) -> str | None:
    """Doubles are left out: Java does not always write the shortest digits."""
    if is_decimal(source) and digits_of(source)[1] > _PLAIN_SCALE:
        return f"spark_decimal_text(CAST({x} AS VARCHAR))"
    if source in INTEGERS or source in TIMES or source == BOOLEAN or is_decimal(source):
        return f"CAST({x} AS VARCHAR)"
    return None


def _local_time(x: str, source: str, target: str) -> str | None:
    """A time without a zone is one in UTC, where Spark casts it to one with a zone."""
    other = target if source == NTZ else source
    if other == STRING:
        return _to_text(x, "TIMESTAMP") if source == NTZ else None
    return f"CAST({x} AS {duck_type(target)})" if other in TIMES else None


def _time(x: str, source: str, target: str) -> str | None:
    if {source, target} == set(TIMES):
        return f"CAST({x} AS {target})"
    if source == "TIMESTAMP" and target == "BIGINT":
        return f"CAST(floor(epoch_us({x}) / 1000000) AS BIGINT)"
    if source == "TIMESTAMP" and target == DOUBLE:
        return f"(epoch_us({x}) / 1000000)"
    return None
