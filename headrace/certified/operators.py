"""Arithmetic, comparison and logic, with Spark's implicit casts and result types.

Integers wrap, a division by zero is NULL, decimals have Spark's digits and scale, and a decimal
that does not fit is NULL.
"""

from __future__ import annotations

import operator
from dataclasses import replace

from headrace.certified.casts import cast, wrapped
from headrace.certified.typed import Bounds, TypedSql, combine, not_available
from headrace.certified.types import (
    BITS,
    BOOLEAN,
    DIGITS_MAX,
    DOUBLE,
    FLOATS,
    INTEGERS,
    STRING,
    TIMES,
    VOID,
    WINDOW,
    compared_as,
    decimal,
    digits_of,
    has_equality,
    has_order,
    is_decimal,
    is_numeric,
    wider_number,
)


def arithmetic(sign: str, a: TypedSql, b: TypedSql) -> TypedSql:
    """`a + b`, and `-`, `*`, `/`, `%`."""
    a, b = (cast(side, DOUBLE) if side.type in (STRING, VOID) else side for side in (a, b))
    if not (is_numeric(a.type) and is_numeric(b.type)):
        raise not_available(f"'{sign}' of {a.type} and {b.type}", _hint(a.type, b.type))
    if a.type in FLOATS or b.type in FLOATS:
        return _doubles(sign, a, b)
    if is_decimal(a.type) or is_decimal(b.type):
        return _decimals(sign, a, b)
    return _doubles(sign, a, b) if sign == "/" else _integers(sign, a, b)


def _hint(a: str, b: str) -> str | None:
    if a in TIMES and b in TIMES:
        return "write datediff(a, b), or unix_micros(a) - unix_micros(b)."
    return None


def _doubles(sign: str, a: TypedSql, b: TypedSql) -> TypedSql:
    type = DOUBLE if sign == "/" else wider_number(a.type, b.type) or DOUBLE
    x, y = cast(a, type).sql, cast(b, type).sql
    if sign in "/%":
        y = f"nullif({y}, 0)"
    if sign == "%":
        a, b = a.deciding(), b.deciding()
    return combine((a, b), f"({x} {sign} {y})", type)


def _integers(sign: str, a: TypedSql, b: TypedSql) -> TypedSql:
    type = wider_number(a.type, b.type) or "BIGINT"
    bounds = _bounds(sign, _limits(a), _limits(b))
    if bounds and -(2 ** (BITS[type] - 1)) <= bounds[0] and bounds[1] < 2 ** (BITS[type] - 1):
        # It cannot overflow, so nothing has to be wrapped, which costs ten times as much.
        sides = f"CAST({a.sql} AS {_duck(type)}) {sign} CAST({b.sql} AS {_duck(type)})"
        return replace(combine((a, b), f"({sides})", type), bounds=bounds)
    wide = "HUGEINT" if BITS[type] >= 64 else "BIGINT"
    x, y = f"CAST({a.sql} AS {wide})", f"CAST({b.sql} AS {wide})"
    if sign == "%":
        return combine((a, b), f"CAST({x} % nullif({y}, 0) AS {_duck(type)})", type)
    return combine((a, b), wrapped(f"({x} {sign} {y})", type), type)


def _limits(side: TypedSql) -> Bounds:
    """The smallest and the largest value that an integer can have."""
    if side.literal is not None:
        return int(side.literal), int(side.literal)
    half: int = 2 ** (BITS[side.type] - 1)
    return side.bounds or (-half, half - 1)


def _bounds(sign: str, a: Bounds, b: Bounds) -> Bounds | None:
    """The bounds of a result; None of a remainder that could be NULL or overflow."""
    if sign == "%":
        largest = b[1] - 1
        return (0 if a[0] >= 0 else -largest, largest) if b[0] > 0 else None
    compute = {"+": operator.add, "-": operator.sub, "*": operator.mul}[sign]
    found = [compute(x, y) for x in a for y in b]
    return min(found), max(found)


def _duck(type: str) -> str:
    return "INTEGER" if type == "INT" else type


def bitwise_and(a: TypedSql, b: TypedSql) -> TypedSql:
    """`a & b` of integers."""
    type = wider_number(a.type, b.type)
    if a.type not in INTEGERS or b.type not in INTEGERS or type is None:
        raise not_available(f"'&' of {a.type} and {b.type}")
    return combine((a, b), f"({cast(a, type).sql} & {cast(b, type).sql})", type)


def integral_division(a: TypedSql, b: TypedSql) -> TypedSql:
    """`a div b`: always BIGINT, cut towards zero."""
    if a.type in INTEGERS and b.type in INTEGERS:
        quotient = f"CAST({a.sql} AS HUGEINT) // nullif(CAST({b.sql} AS HUGEINT), 0)"
        return combine((a, b), wrapped(f"({quotient})", "BIGINT"), "BIGINT")
    raise not_available(f"'div' of {a.type} and {b.type}")


def _decimals(sign: str, a: TypedSql, b: TypedSql) -> TypedSql:
    a, b = _as_decimal(a), _as_decimal(b)
    (p1, s1), (p2, s2) = digits_of(a.type), digits_of(b.type)
    scale = max(s1, s2)
    match sign:
        case "+" | "-":
            type = decimal(max(p1 - s1, p2 - s2) + scale + 1, scale)
            sides = f"{_held(a, type)} {sign} {_held(b, type)}"
            # DuckDB takes no window function within TRY, so it stands only where it is needed.
            full = digits_of(type)[0] == DIGITS_MAX
            return combine(
                (a, b), f"TRY_CAST({f'TRY({sides})' if full else sides} AS {type})", type
            )
        case "*":
            return _product(a, b, decimal(p1 + p2 + 1, s1 + s2), p1 + p2)
        case "/":
            scale = max(6, s1 + p2 + 1)
            return _by_text("spark_divide", a, b, decimal(p1 - s1 + s2 + scale, scale))
    type = decimal(min(p1 - s1, p2 - s2) + scale, scale)
    whole = decimal(max(p1 - s1, p2 - s2) + scale, scale)
    sides = f"CAST({a.sql} AS {whole}) % nullif(CAST({b.sql} AS {whole}), 0)"
    return combine((a, b), f"TRY_CAST({sides} AS {type})", type)


def _held(side: TypedSql, type: str) -> str:
    return f"TRY_CAST({side.sql} AS {type})"


def _as_decimal(side: TypedSql) -> TypedSql:
    if is_decimal(side.type):
        return side
    digits = len(side.literal.lstrip("-")) if side.literal else digits_of(side.type)[0]
    return cast(side, f"DECIMAL({digits},0)")


def _product(a: TypedSql, b: TypedSql, type: str, digits: int) -> TypedSql:
    if digits > 37:
        return _by_text("spark_multiply", a, b, type)
    # DuckDB multiplies short decimals in 64 bits, in which the product may not fit.
    wide = f"CAST({a.sql} AS DECIMAL({DIGITS_MAX},{digits_of(a.type)[1]}))"
    return combine((a, b), f"CAST({wide} * {b.sql} AS {type})", type)


def _by_text(function: str, a: TypedSql, b: TypedSql, type: str) -> TypedSql:
    digits, scale = digits_of(type)
    sides = f"CAST({a.sql} AS VARCHAR), CAST({b.sql} AS VARCHAR)"
    return combine((a, b), f"CAST({function}({sides}, {digits}, {scale}) AS {type})", type)


NEGATED_DIGITS = 34  # Spark rounds a decimal of more digits when it changes the sign


def negated(value: TypedSql) -> TypedSql:
    if value.type in INTEGERS:
        zero = TypedSql("0", value.type)
        return _integers("-", zero, value)
    if is_decimal(value.type) and digits_of(value.type)[0] > NEGATED_DIGITS:
        raise not_available(f"the negative of {value.type}, which Spark rounds,")
    if value.type in FLOATS or is_decimal(value.type):
        return value.as_type(f"(-{value.sql})", value.type)
    if value.type == STRING:
        return negated(cast(value, DOUBLE))
    raise not_available(f"'-' of {value.type}")


def comparison(sign: str, a: TypedSql, b: TypedSql) -> TypedSql:
    """`a = b`, and `<>`, `<`, `<=`, `>`, `>=`, `IS NOT DISTINCT FROM`."""
    if WINDOW in (a.type, b.type) and a.type != b.type:
        raise not_available(f"a comparison of a window with {_other(a, b)}", _EDGES)
    a, b = _comparable(a, b)
    type = compared_as(a.type, b.type)
    equality = sign in {"=", "<>", "IS NOT DISTINCT FROM"}
    if type is None or not (has_equality(type) and (equality or has_order(type))):
        raise not_available(f"'{sign}' of {a.type} and {b.type}")
    a, b = cast(a, type), cast(b, type)
    return combine((a, b), f"({a.sql} {sign} {b.sql})", BOOLEAN)


_EDGES = "a window has two bounds: append .start or .end to its name."


def _other(a: TypedSql, b: TypedSql) -> str:
    return b.type if a.type == WINDOW else a.type


def _comparable(a: TypedSql, b: TypedSql) -> tuple[TypedSql, TypedSql]:
    """An integer literal beside a decimal has the digits that are written."""
    if is_decimal(a.type) and b.type in INTEGERS and b.literal:
        return a, _as_decimal(b)
    if is_decimal(b.type) and a.type in INTEGERS and a.literal:
        return _as_decimal(a), b
    return a, b


def truth(value: TypedSql) -> TypedSql:
    """A value where a condition is expected."""
    if value.type == VOID:
        return cast(value, BOOLEAN)
    if value.type != BOOLEAN:
        raise not_available(f"{value.type} as a condition", "write a comparison.")
    return value
