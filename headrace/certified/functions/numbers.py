"""Functions of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headrace.certified.casts import cast, wrapped
from headrace.certified.function import Scalar, rows
from headrace.certified.operators import arithmetic, negated
from headrace.certified.typed import TypedSql, combine
from headrace.certified.types import (
    DIGITS_MAX,
    DOUBLE,
    FLOATS,
    INTEGERS,
    digits_of,
    duck_type,
    is_decimal,
    wider_number,
)
from headrace.core.errors import BadQuery

D = "DOUBLE"


def _round(arguments: Sequence[TypedSql]) -> TypedSql:
    """Half up. The number of places is a literal."""
    value = arguments[0]
    places = _places(arguments[1].literal or "0") if len(arguments) > 1 else 0
    if value.type in FLOATS:
        value = value.deciding()
        rounded = f"spark_round({value.sql}, {places})"
        sql = f"CASE WHEN isfinite({value.sql}) THEN {rounded} ELSE {value.sql} END"
        return value.as_type(f"CAST({sql} AS {value.type})", value.type)
    if is_decimal(value.type):
        return _rounded_decimal(value, places)
    if places >= 0:
        return value.as_type(value.sql, value.type)
    step = 10**-places
    half = f"(abs(CAST({value.sql} AS HUGEINT)) + {step // 2}) // {step} * {step}"
    return value.as_type(wrapped(f"(sign({value.sql}) * ({half}))", value.type), value.type)


_PLACES_MAX = 400  # no DOUBLE has more


def _places(literal: str) -> int:
    try:
        places = int(literal)
    except ValueError as error:
        found = literal[:40]
        raise BadQuery(f"the second argument of round must be an integer, got {found}") from error
    return max(-DIGITS_MAX, min(places, _PLACES_MAX))


def _rounded_decimal(value: TypedSql, places: int) -> TypedSql:
    digits, scale = digits_of(value.type)
    whole = digits - scale + 1
    if places < 0:
        type = f"DECIMAL({min(max(whole, 1 - places), DIGITS_MAX)},0)"
        step = 10**-places
        moved = f"(abs(CAST({value.sql} AS HUGEINT)) + {step // 2}) // {step} * {step}"
        exact = f"trunc({value.sql})"
        moved = moved.replace(value.sql, exact)
        return value.as_type(f"TRY_CAST(sign({value.sql}) * ({moved}) AS {type})", type)
    kept = min(scale, places)
    type = f"DECIMAL({min(whole + kept, DIGITS_MAX)},{kept})"
    return value.as_type(f"TRY_CAST({value.sql} AS {type})", type)


def _whole(function: str) -> Scalar:
    def make(arguments: Sequence[TypedSql]) -> TypedSql:
        """ceil or floor: BIGINT of a double, a decimal without a fraction of a decimal."""
        value = arguments[0]
        if value.type in INTEGERS:
            return cast(value, "BIGINT")
        if is_decimal(value.type):
            digits, scale = digits_of(value.type)
            if scale == 0:
                return value.as_type(value.sql, value.type)
            type = f"DECIMAL({min(digits - scale + 1, DIGITS_MAX)},0)"
            return value.as_type(f"CAST({function}({value.sql}) AS {type})", type)
        whole = value.as_type(f"{function}(CAST({value.sql} AS DOUBLE))", DOUBLE)
        return cast(whole, "BIGINT")

    return Scalar(function, ("NUMBER",), make)


def _abs(arguments: Sequence[TypedSql]) -> TypedSql:
    value = arguments[0]
    negative = negated(value).sql
    if value.type in INTEGERS:
        sql = f"CASE WHEN {value.sql} < 0 THEN {negative} ELSE {value.sql} END"
        return value.as_type(sql, value.type)
    return value.as_type(f"abs({value.sql})", value.type)


def _mod(arguments: Sequence[TypedSql]) -> TypedSql:
    return arithmetic("%", arguments[0], arguments[1])


def _pmod(arguments: Sequence[TypedSql]) -> TypedSql:
    """The remainder that is not negative where the divisor is positive; of integers."""
    a, b = arguments
    if "BIGINT" not in (a.type, b.type) and "INT" not in (a.type, b.type):
        # Java computes with 32 bits at least.
        wide = _pmod([cast(a, "INT"), cast(b, "INT")])
        return cast(wide, wider_number(a.type, b.type) or "INT")
    rest = arithmetic("%", a, b)
    shifted = arithmetic("%", arithmetic("+", rest, b), b).sql
    sql = f"CASE WHEN {rest.sql} < 0 THEN {shifted} ELSE {rest.sql} END"
    made = combine((a, b), f"CAST({sql} AS {duck_type(rest.type)})", rest.type)
    divisor = int(b.literal) if b.literal else 0
    return replace(made, bounds=(0, divisor - 1) if divisor > 0 else None)


_BELOW, _ABOVE = "THEN CAST(0 AS BIGINT)", "THEN {3} + 1"
_BUCKET = "ELSE CAST(trunc({3} * (%s) / abs({2} - {1})) AS BIGINT) + 1"
# The buckets count down where the first edge is the larger one.
_WIDTH_BUCKET = (
    "CASE WHEN {0} IS NULL OR {3} IS NULL OR isnan({0}) OR NOT isfinite({1}) OR NOT isfinite({2}) "
    f"OR {{1}} = {{2}} OR {{3}} <= 0 OR {{3}} = {2**63 - 1} THEN NULL "
    f"WHEN {{1}} < {{2}} THEN CASE WHEN {{0}} < {{1}} {_BELOW} WHEN {{0}} >= {{2}} {_ABOVE} "
    f"{_BUCKET % '{0} - {1}'} END "
    f"WHEN {{1}} > {{2}} THEN CASE WHEN {{0}} > {{1}} {_BELOW} WHEN {{0}} <= {{2}} {_ABOVE} "
    f"{_BUCKET % '{1} - {0}'} END END"
)


def _in_domain(function: str, domain: str) -> str:
    """NULL outside the function's domain, as Spark's logarithms are."""
    return f"CASE WHEN {domain} THEN {function} END"


def _nan_outside(function: str, domain: str) -> str:
    """NaN outside the function's domain, where DuckDB raises an error."""
    inside = f"WHEN {domain} THEN {function} ELSE CAST('nan' AS DOUBLE)"
    return f"CASE WHEN {{0}} IS NULL THEN NULL {inside} END"


def _rounded(name: str, takes: tuple[str, ...], sql: str) -> Scalar:
    """A function of which mathematical libraries compute the last digits differently."""
    return Scalar(name, takes, sql, D, rounded=True)


ROWS = rows(
    Scalar("round", ("NUMBER",), _round),
    Scalar("round", ("NUMBER", "LITERAL"), _round),
    _whole("ceil"),
    _whole("floor"),
    Scalar("abs", ("NUMBER",), _abs),
    Scalar("mod", ("NUMBER", "NUMBER"), _mod),
    Scalar("try_divide", ("NUMBER", "NUMBER"), lambda given: arithmetic("/", *given)),
    Scalar("width_bucket", (D, D, D, "BIGINT"), _WIDTH_BUCKET, "BIGINT"),
    Scalar("pmod", ("INTEGER", "INTEGER"), _pmod),
    Scalar("negative", ("NUMBER",), lambda arguments: negated(arguments[0])),
    Scalar("positive", ("NUMBER",), "{0}", "="),
    Scalar("sign", (D,), "CASE WHEN isnan({0}) THEN {0} ELSE CAST(sign({0}) AS DOUBLE) END", D),
    Scalar("sqrt", (D,), _nan_outside("sqrt({0})", "{0} >= 0 OR isnan({0})"), D),
    _rounded("cbrt", (D,), "cbrt({0})"),
    _rounded("exp", (D,), "exp({0})"),
    _rounded("ln", (D,), _in_domain("ln({0})", "{0} > 0")),
    _rounded("log", (D,), _in_domain("ln({0})", "{0} > 0")),
    _rounded("log", (D, D), _in_domain("ln({1}) / ln({0})", "{0} > 0 AND {1} > 0")),
    _rounded("log10", (D,), _in_domain("log10({0})", "{0} > 0")),
    _rounded("log2", (D,), _in_domain("log2({0})", "{0} > 0")),
    # For 1 and an exponent that is NaN or infinite, C gives 1 and Java NaN.
    _rounded(
        "power",
        (D, D),
        "CASE WHEN abs({0}) = 1 AND NOT isfinite({1}) THEN CAST('nan' AS DOUBLE) "
        "ELSE pow({0}, {1}) END",
    ),
    _rounded("degrees", (D,), "degrees({0})"),
    _rounded("radians", (D,), "radians({0})"),
    _rounded("sin", (D,), _nan_outside("sin({0})", "isfinite({0})")),
    _rounded("cos", (D,), _nan_outside("cos({0})", "isfinite({0})")),
    _rounded("tan", (D,), _nan_outside("tan({0})", "isfinite({0})")),
    _rounded("asin", (D,), _nan_outside("asin({0})", "{0} BETWEEN -1 AND 1")),
    _rounded("acos", (D,), _nan_outside("acos({0})", "{0} BETWEEN -1 AND 1")),
    _rounded("atan", (D,), "atan({0})"),
    _rounded("atan2", (D, D), "atan2({0} + 0.0, {1} + 0.0)"),
    Scalar("isnan", (D,), "coalesce(isnan({0}), false)", "BOOLEAN"),
    Scalar("nanvl", (D, D), "CASE WHEN isnan({0}) THEN {1} ELSE {0} END", D),
    Scalar("pi", (), "pi()", D),
    Scalar("e", (), "exp(1)", D),
    also={"ceiling": "ceil", "signum": "sign", "pow": "power"},
)
