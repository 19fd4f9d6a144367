"""Counts, sums, averages, extremes, variances, and the value at an extreme: plain columns.

Each merge is one expression in SQL (serving/merge.py).
"""

from __future__ import annotations

from headrace.core.aggregate.model import (
    ANY,
    BIGINT,
    BOOLEAN,
    DOUBLE,
    NUMBER,
    ORDERED,
    TRUTH,
    Aggregate,
    Lower,
    LoweredAggregate,
    Merge,
    ParameterValues,
    Partial,
    Types,
)
from headrace.core.schema import Type
from headrace.core.storage import Storage


def sum_of(lift: str, storage: str = "INTEGER") -> Partial:
    """A partial of one column whose parts are added."""
    return Partial(Merge.SUM, (lift + "{when}",), (storage,))


# A BIGINT is summed as its high and low halves, which cannot overflow below 2^31 events. So the
# merge is associative also when a part of the events would overflow, and only the total decides:
# NULL outside BIGINT.
_HALVES = (sum_of("sum(shiftright({x}, 32))"), sum_of("sum({x} & 4294967295)"))
_WHOLE = (
    "CASE WHEN {0} + ({1} >> 32) BETWEEN -2147483648 AND 2147483647 "
    "THEN ({0} + ({1} >> 32)) * 4294967296 + ({1} & 4294967295) END"
)
_COUNT = sum_of("count({x})")

_DIGITS_MAX, _LOW_DIGITS = 38, 19


def _decimals(size: tuple[int, int]) -> tuple[Partial, ...]:
    """A sum of decimals, as text because the store has no decimals: one partial, or two if the sum
    could have more digits than Spark's 38. Then the nineteen low digits are summed apart, as the
    halves of a BIGINT are, and neither sum overflows below 10^9 events.
    """
    precision, scale = size
    if precision + 10 <= _DIGITS_MAX:
        return (_decimals_of("{x}"),)
    kept = scale - _LOW_DIGITS  # the digits after the point that are not low ones
    unit = f"1{'0' * -kept}BD" if kept <= 0 else f"0.{'0' * (kept - 1)}1BD"
    low, high = f"{{x}} % {unit}", f"({{x}} - {{x}} % {unit})"
    if kept > 0:
        return _decimals_of(f"cast({high} as decimal(28, {kept}))"), _decimals_of(low)
    return _decimals_of(f"cast({high} / {unit} as decimal(28, 0))", f"E{-kept}"), _decimals_of(low)


def _decimals_of(x: str, exponent: str = "") -> Partial:
    text = f"cast(sum({x}){{when}} as string)"
    lift = f"concat({text}, '{exponent}')" if exponent else text
    return Partial(Merge.DECIMAL_SUM, (lift,), ("TEXT",))


def _decimal_sum(size: tuple[int, int]) -> LoweredAggregate:
    partials, total = _decimals(size), _sum_type(size)
    return LoweredAggregate(partials, _finish_decimals(total, partials), total)


def _decimal_avg(size: tuple[int, int]) -> LoweredAggregate:
    """The mean is NULL where the sum is: so it is in Spark."""
    partials = _decimals(size)
    mean = Type.decimal_of(*(min(digits + 4, _DIGITS_MAX) for digits in size))
    finish = _finish_decimals(mean, partials, f"{{{len(partials)}}}")
    if len(partials) > 1:
        total = _finish_decimals(_sum_type(size), partials)
        finish = f"CASE WHEN {total} IS NOT NULL THEN {finish} END"
    return LoweredAggregate((*partials, _COUNT), finish, mean)


def _sum_type(size: tuple[int, int]) -> Type:
    return Type.decimal_of(min(size[0] + 10, _DIGITS_MAX), size[1])


def _finish_decimals(type: Type, sums: tuple[Partial, ...], count: str = "") -> str:
    assert type.size is not None
    rest = [count or "NULL", "{1}"] if len(sums) > 1 else [count] if count else []
    return f"finish_decimal_sum({', '.join(['{0}', *map(str, type.size), *rest])})"


def _count(types: Types, said: ParameterValues) -> LoweredAggregate:
    return LoweredAggregate((_COUNT,), "coalesce({0}, 0)", BIGINT)


def _sum(types: Types, said: ParameterValues) -> LoweredAggregate | None:
    match types[0]:
        case Type("TINYINT" | "SMALLINT" | "INT"):
            return LoweredAggregate((sum_of("sum({x})"),), "{0}", BIGINT)
        case Type("BIGINT"):
            return LoweredAggregate(_HALVES, _WHOLE, BIGINT)
        case Type("FLOAT" | "DOUBLE"):
            return LoweredAggregate((sum_of("sum({x})", "REAL"),), "{0}", DOUBLE)
        case Type("DECIMAL", size=size) if size:
            return _decimal_sum(size)
    return None


def _avg(types: Types, said: ParameterValues) -> LoweredAggregate | None:
    sums: tuple[Partial, ...]
    match types[0]:
        case Type("TINYINT" | "SMALLINT" | "INT"):
            finish, sums = "{0} * 1e0 / nullif({1}, 0)", (sum_of("sum({x})"),)
        case Type("BIGINT"):
            # The low half is carried into the high one first, or digits of the sum would be lost.
            high, low = "({0} + ({1} >> 32))", "({1} & 4294967295)"
            finish, sums = f"({high} * 4294967296e0 + {low}) / nullif({{2}}, 0)", _HALVES
        case Type("FLOAT" | "DOUBLE"):
            finish, sums = "{0} / nullif({1}, 0)", (sum_of("sum({x})", "REAL"),)
        case Type("DECIMAL", size=size) if size:
            return _decimal_avg(size)
        case _:
            return None
    return LoweredAggregate((*sums, _COUNT), finish, DOUBLE)


def _extreme(merge: Merge) -> Lower:
    def lower(types: Types, said: ParameterValues) -> LoweredAggregate | None:
        storage = Storage(types[0])
        partial = Partial(merge, (f"{merge}({{x:stored}}){{when}}",), (storage.column,))
        return LoweredAggregate((partial,), "{0}", types[0]) if storage.ordered else None

    return lower


def _boolean(merge: Merge) -> Lower:
    def lower(types: Types, said: ParameterValues) -> LoweredAggregate | None:
        partial = Partial(merge, (f"{merge}({{x:stored}}){{when}}",), ("INTEGER",))
        return LoweredAggregate((partial,), "{0} <> 0", BOOLEAN) if types[0] == BOOLEAN else None

    return lower


def _moments(finish: str) -> Lower:
    lifts = ("count({x}){when}", "avg({x}){when}", "var_pop({x}){when} * count({x}){when}")
    storages = ("INTEGER", "REAL", "REAL")

    def lower(types: Types, said: ParameterValues) -> LoweredAggregate | None:
        if types[0].name == "DECIMAL":
            doubles = tuple(lift.replace("{x}", "cast({x} as double)") for lift in lifts)
            return LoweredAggregate((Partial(Merge.MOMENTS, doubles, storages),), finish, DOUBLE)
        partial = Partial(Merge.MOMENTS, lifts, storages)
        return LoweredAggregate((partial,), finish, DOUBLE) if types[0].numeric else None

    return lower


def _by(merge: Merge) -> Lower:
    # Events that tie are ordered by their offset in the log: the latest wins. Within one event,
    # which an explode may have multiplied, the value itself decides.
    place = "_seq" if merge is Merge.MAX_BY else "-_seq"
    order = f"struct({{y:stored}}, {place}, {{x:part}})"
    lifts = (
        f"{merge}({{x:stored}}, {order}){{when}}",
        f"{merge.value[:3]}({{y:stored}}){{when}}",
        f"{merge}(_seq, {order}){{when}}",
    )

    def lower(types: Types, said: ParameterValues) -> LoweredAggregate | None:
        value, order_by = map(Storage, types)
        storages = (value.column, order_by.column, "INTEGER")
        partial = Partial(merge, lifts, storages)
        return LoweredAggregate((partial,), "{0}", types[0]) if order_by.ordered else None

    return lower


_BY = f"any value, and {ORDERED}"
_VAR_SAMP = "CASE WHEN {0} > 1 THEN {2} / ({0} - 1) END"
_VAR_POP = "{2} / nullif({0}, 0)"


def _root(variance: str) -> str:
    # Rounding may leave a spread below zero where there is none.
    return f"sqrt(CASE WHEN {variance} < 0 THEN 0 ELSE {variance} END)"


ROWS = (
    Aggregate("count", 1, ANY, _count),
    Aggregate("sum", 1, NUMBER, _sum),
    Aggregate("avg", 1, NUMBER, _avg),
    Aggregate("min", 1, ORDERED, _extreme(Merge.MIN)),
    Aggregate("max", 1, ORDERED, _extreme(Merge.MAX)),
    Aggregate("var_samp", 1, NUMBER, _moments(_VAR_SAMP)),
    Aggregate("var_pop", 1, NUMBER, _moments(_VAR_POP)),
    Aggregate("stddev_samp", 1, NUMBER, _moments(_root(_VAR_SAMP))),
    Aggregate("stddev_pop", 1, NUMBER, _moments(_root(_VAR_POP))),
    Aggregate("bool_and", 1, TRUTH, _boolean(Merge.MIN)),
    Aggregate("bool_or", 1, TRUTH, _boolean(Merge.MAX)),
    Aggregate("max_by", 2, _BY, _by(Merge.MAX_BY), needs=("y",)),
    Aggregate("min_by", 2, _BY, _by(Merge.MIN_BY), needs=("y",)),
)
