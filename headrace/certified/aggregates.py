"""Aggregates and window functions.

An aggregate is made of DuckDB's own by `over`, which adds the modifiers of the query: DISTINCT,
FILTER, OVER. So one row serves GROUP BY and windows alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation

from headrace.certified.casts import cast, wrapped
from headrace.certified.operators import truth
from headrace.certified.typed import ORDER_BY_PART, TypedSql, combine, not_available
from headrace.certified.types import (
    DIGITS_MAX,
    DOUBLE,
    INTEGERS,
    STRING,
    VOID,
    can_group,
    digits_of,
    has_order,
    is_decimal,
    is_numeric,
)
from headrace.core.aggregate import SYNONYMS as OF_VIEWS
from headrace.core.errors import BadQuery

# Decimals of which 10^10 are added within 38 digits.
SUMMED_DIGITS_MAX = DIGITS_MAX - 10
Over = Callable[[str], str]  # DuckDB's call -> the same with the modifiers of the query
Make = Callable[[Sequence[TypedSql], Over], TypedSql]


@dataclass(frozen=True, slots=True)
class OrderByItem:
    """An item of WITHIN GROUP (ORDER BY …)."""

    value: TypedSql
    descending: bool
    sql: str


MakeOrdered = Callable[[Sequence[TypedSql], Sequence[OrderByItem], bool, Over], TypedSql]


@dataclass(frozen=True, slots=True)
class OrderedSet:
    """An aggregate over rows in an order: its arguments, the order, and whether it is DISTINCT."""

    name: str
    counts: tuple[int, ...]
    make: MakeOrdered


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    name: str
    counts: tuple[int, ...]  # how many arguments it may have
    make: Make
    window_only: bool = False


def _number(value: TypedSql) -> TypedSql:
    if value.type in (STRING, VOID):
        return cast(value, DOUBLE)
    if not is_numeric(value.type):
        raise not_available(f"a numeric aggregate of {value.type}")
    return value


def _count(given: Sequence[TypedSql], over: Over) -> TypedSql:
    if not given:
        return TypedSql(over("count(*)"), "BIGINT")
    if unequal := next((value.type for value in given if not can_group(value.type)), None):
        raise not_available(f"count of {unequal}", "write count(*) FILTER (WHERE … IS NOT NULL).")
    known = " AND ".join(f"{value.sql} IS NOT NULL" for value in given)
    values = ", ".join(value.sql for value in given)
    what = values if len(given) == 1 else f"CASE WHEN {known} THEN row({values}) END"
    # Only whether a value is NULL matters, so its last digits do not.
    return combine((replace(v, rounded=None) for v in given), over(f"count({what})"), "BIGINT")


def _sum(given: Sequence[TypedSql], over: Over) -> TypedSql:
    value = _number(given[0])
    if value.type in INTEGERS:
        total = f"CAST({over(f'sum({value.sql})')} AS HUGEINT)"
        return value.as_type(wrapped(total, "BIGINT"), "BIGINT")
    if is_decimal(value.type):
        digits, scale = digits_of(value.type)
        type = f"DECIMAL({min(digits + 10, DIGITS_MAX)},{scale})"
        return value.as_type(f"TRY_CAST({_decimal_sum(value, over)} AS {type})", type)
    return value.as_type(over(f"sum({cast(value, DOUBLE).sql})"), DOUBLE)


def _decimal_sum(value: TypedSql, over: Over) -> str:
    """The sum of decimals, NULL where Spark has no digits for it."""
    digits, scale = digits_of(value.type)
    if digits <= SUMMED_DIGITS_MAX:
        return over(f"sum({value.sql})")
    # DuckDB's sum fails beyond 128 bits, so the digits are added as an integer of any size.
    whole = f"CAST(replace(CAST({value.sql} AS VARCHAR), '.', '') AS BIGNUM)"
    total = f"CAST({over(f'sum({whole})')} AS VARCHAR)"
    return f"spark_multiply({total}, '1e-{scale}', {DIGITS_MAX}, {scale})"


def _avg(given: Sequence[TypedSql], over: Over) -> TypedSql:
    value = _number(given[0])
    if not is_decimal(value.type):
        return value.as_type(over(f"avg({cast(value, DOUBLE).sql})"), DOUBLE)
    digits, scale = digits_of(value.type)
    digits, scale = min(digits + 4, DIGITS_MAX), min(scale + 4, DIGITS_MAX)
    sides = [_decimal_sum(value, over), over(f"count({value.sql})")]
    texts = ", ".join(f"CAST({side} AS VARCHAR)" for side in sides)
    type = f"DECIMAL({digits},{scale})"
    return value.as_type(f"CAST(spark_divide({texts}, {digits}, {scale}) AS {type})", type)


def _same(function: str) -> Make:
    def make(given: Sequence[TypedSql], over: Over) -> TypedSql:
        if function in {"min", "max"} and not has_order(given[0].type):
            raise not_available(f"{function} of {given[0].type}")
        return given[0].as_type(over(f"{function}({given[0].sql})"), given[0].type)

    return make


def _double(template: str) -> Make:
    def make(given: Sequence[TypedSql], over: Over) -> TypedSql:
        values = [cast(_number(value), DOUBLE) for value in given]
        return combine(values, over(template.format(*(v.sql for v in values))), DOUBLE)

    return make


def _correlation(given: Sequence[TypedSql], over: Over) -> TypedSql:
    """NULL where one side does not vary, which DuckDB calls NaN."""
    found = _double("corr({0}, {1})")(given, over)
    return found.as_type(f"CASE WHEN isfinite({found.sql}) THEN {found.sql} END", DOUBLE)


def _logical(function: str) -> Make:
    def make(given: Sequence[TypedSql], over: Over) -> TypedSql:
        value = truth(given[0])
        return value.as_type(over(f"{function}({value.sql})"), "BOOLEAN")

    return make


def _count_if(given: Sequence[TypedSql], over: Over) -> TypedSql:
    value = truth(given[0])
    return value.as_type(over(f"count(CASE WHEN {value.sql} THEN 1 END)"), "BIGINT")


def _by(function: str) -> Make:
    def make(given: Sequence[TypedSql], over: Over) -> TypedSql:
        x, y = given
        if not has_order(y.type):
            raise not_available(f"ordering by {y.type}", ORDER_BY_PART)
        return combine(given, over(f"{function}({x.sql}, {y.sql})"), x.type)

    return make


def _percentile(given: Sequence[TypedSql], over: Over) -> TypedSql:
    fraction = _fraction("percentile", given[1]) if len(given) > 1 else Decimal("0.5")
    value = cast(_number(given[0]), DOUBLE)
    return value.as_type(over(f"quantile_cont({value.sql}, {float(fraction)})"), DOUBLE)


def _fraction(name: str, value: TypedSql) -> Decimal:
    if value.literal is None:
        raise not_available(f"{name} with a fraction that is not a literal")
    try:
        fraction = Decimal(value.literal)
    except InvalidOperation:
        fraction = Decimal("NaN")
    if not (fraction.is_finite() and 0 <= fraction <= 1):
        raise BadQuery(f"the fraction of {name} must be from 0 to 1, got {value.literal[:40]}")
    return fraction


def _percentile_cont(
    given: Sequence[TypedSql], order: Sequence[OrderByItem], distinct: bool, over: Over
) -> TypedSql:
    if len(order) != 1 or distinct:
        raise not_available("percentile_cont without one ORDER BY item")
    fraction = _fraction("percentile_cont", given[0])
    value = cast(_number(order[0].value), DOUBLE)
    wanted = 1 - fraction if order[0].descending else fraction
    return value.as_type(over(f"quantile_cont({value.sql}, {float(wanted)})"), DOUBLE)


def _listagg(
    given: Sequence[TypedSql], order: Sequence[OrderByItem], distinct: bool, over: Over
) -> TypedSql:
    """Texts that are equal in the order are equal texts, so the result is one and the same."""
    value, by = given[0], given[1].sql if len(given) > 1 else "''"
    if value.type != STRING:
        raise not_available(f"listagg of {value.type}", "cast it to STRING.")
    if len(given) > 1 and (given[1].type != STRING or given[1].literal is None):
        raise not_available("listagg with a delimiter that is not a literal")
    last = order[-1].value.sql == value.sql
    if not last or (distinct and len(order) > 1):
        raise not_available(
            "listagg in an order that may have ties",
            "make the aggregated value the last item of ORDER BY; with DISTINCT, the only one.",
        )
    items, word = ", ".join(item.sql for item in order), "DISTINCT " if distinct else ""
    return value.as_type(over(f"string_agg({word}{value.sql}, {by} ORDER BY {items})"), STRING)


def _numbered(function: str, type: str = "INT") -> Make:
    duck = {"INT": "INTEGER"}.get(type, type)

    def make(given: Sequence[TypedSql], over: Over) -> TypedSql:
        arguments = ", ".join(value.sql for value in given)
        return TypedSql(f"CAST({over(f'{function}({arguments})')} AS {duck})", type)

    return make


def _shifted(function: str) -> Make:
    def make(given: Sequence[TypedSql], over: Over) -> TypedSql:
        value, rest = given[0], [*given[1:2], *(cast(v, given[0].type) for v in given[2:])]
        arguments = ", ".join(v.sql for v in (value, *rest))
        return combine((value, *rest), over(f"{function}({arguments})"), value.type)

    return make


AGGREGATES: dict[str, AggregateFunction] = {
    row.name: row
    for row in (
        AggregateFunction("count", (0, 1, 2, 3, 4), _count),
        AggregateFunction("sum", (1,), _sum),
        AggregateFunction("avg", (1,), _avg),
        AggregateFunction("min", (1,), _same("min")),
        AggregateFunction("max", (1,), _same("max")),
        AggregateFunction("stddev_samp", (1,), _double("stddev_samp({0})")),
        AggregateFunction("stddev_pop", (1,), _double("stddev_pop({0})")),
        AggregateFunction("var_samp", (1,), _double("var_samp({0})")),
        AggregateFunction("var_pop", (1,), _double("var_pop({0})")),
        AggregateFunction("covar_samp", (2,), _double("covar_samp({0}, {1})")),
        AggregateFunction("covar_pop", (2,), _double("covar_pop({0}, {1})")),
        AggregateFunction("corr", (2,), _correlation),
        AggregateFunction("bool_and", (1,), _logical("bool_and")),
        AggregateFunction("bool_or", (1,), _logical("bool_or")),
        AggregateFunction("count_if", (1,), _count_if),
        AggregateFunction("max_by", (2,), _by("arg_max_null")),
        AggregateFunction("min_by", (2,), _by("arg_min_null")),
        AggregateFunction("percentile", (2,), _percentile),
        AggregateFunction("median", (1,), _percentile),
        AggregateFunction("row_number", (0,), _numbered("row_number"), window_only=True),
        AggregateFunction("rank", (0,), _numbered("rank"), window_only=True),
        AggregateFunction("dense_rank", (0,), _numbered("dense_rank"), window_only=True),
        AggregateFunction("ntile", (1,), _numbered("ntile"), window_only=True),
        AggregateFunction(
            "percent_rank", (0,), _numbered("percent_rank", DOUBLE), window_only=True
        ),
        AggregateFunction("cume_dist", (0,), _numbered("cume_dist", DOUBLE), window_only=True),
        AggregateFunction("lag", (1, 2, 3), _shifted("lag"), window_only=True),
        AggregateFunction("lead", (1, 2, 3), _shifted("lead"), window_only=True),
        AggregateFunction("first_value", (1,), _same("first_value"), window_only=True),
        AggregateFunction("last_value", (1,), _same("last_value"), window_only=True),
        AggregateFunction("nth_value", (2,), _shifted("nth_value"), window_only=True),
    )
}
ORDERED_SETS: dict[str, OrderedSet] = {
    row.name: row
    for row in (
        OrderedSet("percentile_cont", (1,), _percentile_cont),
        OrderedSet("listagg", (1, 2), _listagg),
    )
}
SYNONYMS = {
    **{name: meant for name, meant in OF_VIEWS.items() if meant in AGGREGATES},
    "first": "first_value",
    "last": "last_value",
    "string_agg": "listagg",
}
