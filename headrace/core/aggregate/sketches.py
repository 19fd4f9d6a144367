"""Estimates from sketches of a bounded size: distinct values, percentiles, frequent values.

Spark lifts them; those of Apache DataSketches are merged and read by the datasketches package, and
Spark's own count-min sketch by serving/states/count_min.py. tests/serving/test_sketches.py checks
that the bytes mean the same on both sides.
"""

from __future__ import annotations

from typing import Any

from headrace.core.aggregate.model import (
    BIGINT,
    DOUBLE,
    EQUAL,
    NUMBER,
    ORDERED,
    Aggregate,
    AggregateParameter,
    Approximation,
    LoweredAggregate,
    Merge,
    ParameterValues,
    Partial,
    Types,
)
from headrace.core.schema import WHOLE, Type
from headrace.core.storage import Storage

HLL_LG_K = 12
# One standard error of an HLL sketch with 2^12 registers.
HLL_ERROR = 0.0163
KLL_K = 200
# The rank of a value read from a KLL sketch with k = 200 is off by less, 99 times in 100.
KLL_ERROR = 0.0133
# Spark makes of it a table of 1024 counters, each at most 3.5 / 1024 of all events too low.
TOP_K_ITEMS = 768
TOP_K_ERROR = 0.0034
# 5 rows of 200 counters: at most 1 % of all events too high, 96 times in 100.
COUNT_MIN_ERROR, COUNT_MIN_CONFIDENCE = 0.01, 0.96


def _distinct(types: Types, said: ParameterValues) -> LoweredAggregate | None:
    storage = Storage(types[0])
    lift = f"hll_sketch_agg({_SKETCHED[storage.column]}, {HLL_LG_K}){{when}}"
    sketch = Partial(Merge.HLL, (lift,), ("BLOB",))
    return (
        LoweredAggregate((sketch,), "coalesce(finish_hll({0}), 0)", BIGINT)
        if storage.groups
        else None
    )


# Spark sketches whole numbers and texts, and ignores empty texts, so no text is left empty.
_SKETCHED = {
    "INTEGER": "cast({x:key} as bigint)",
    "REAL": "cast({x:key} as string)",
    "TEXT": "concat({x:key}, '.')",
    "BLOB": "concat(hex({x:key}), '.')",
}


def _count_distinct(types: Types, said: ParameterValues) -> LoweredAggregate | None:
    """The sketch, and beside it the number that batch counts."""
    sketched = _distinct(types, said)
    if sketched is None:
        return None
    counted = Partial(Merge.COUNTED, (), ("INTEGER",))
    return LoweredAggregate(
        (*sketched.partials, counted), "coalesce({1}, finish_hll({0}), 0)", BIGINT
    )


_QUANTILES = Partial(
    Merge.KLL, (f"kll_sketch_agg_double(cast({{x}} as double), {KLL_K}){{when}}",), ("BLOB",)
)


def _percentile(types: Types, said: ParameterValues) -> LoweredAggregate | None:
    """The smallest value that at least the share `p` of the values does not exceed."""
    if not types[0].numeric:
        return None
    value = f"finish_kll({{0}}, {said[0]!r}, 1)"
    whole = types[0].name in WHOLE
    return LoweredAggregate((_QUANTILES,), f"cast({value} as bigint)" if whole else value, types[0])


def _median(types: Types, said: ParameterValues) -> LoweredAggregate | None:
    """The middle value, or the mean of the two in the middle."""
    finish = "(finish_kll({0}, 0.5, 1) + finish_kll({0}, 0.5, 0)) / 2"
    return LoweredAggregate((_QUANTILES,), finish, DOUBLE) if types[0].numeric else None


def _top_k(types: Types, said: ParameterValues) -> LoweredAggregate | None:
    if not Storage(types[0]).ordered:
        return None
    value = "cast({x:key} as string)"
    lift = f"(approx_top_k_accumulate({value}, {TOP_K_ITEMS}){{when}}).sketch"
    finish = f"coalesce(finish_top_k({{0}}, {said[0]}, '{types[0].spark}'), '[]')"
    type = Type.array_of(Type.struct_of(("item", types[0]), ("count", BIGINT)))
    return LoweredAggregate((Partial(Merge.TOP_K, (lift,), ("BLOB",)),), finish, type)


def _count_min(types: Types, said: ParameterValues) -> LoweredAggregate | None:
    """How often one value occurred; the sketch does not depend on the value."""
    value = _as_text(types[0], said[0])
    if value is None:
        return None
    shape = f"{COUNT_MIN_ERROR}D, {COUNT_MIN_CONFIDENCE}D, 42"
    lift = f"count_min_sketch(cast({{x}} as string), {shape}){{when}}"
    # In hexadecimal digits, so that no text can be mistaken for a part of the SQL.
    finish = f"coalesce(finish_count_min({{0}}, '{value.encode().hex()}'), 0)"
    return LoweredAggregate((Partial(Merge.COUNT_MIN, (lift,), ("BLOB",)),), finish, BIGINT)


def _as_text(type: Type, value: Any) -> str | None:
    """The literal as Spark casts a value of this type to text; None if it is of another type."""
    wanted = str if type.name == "STRING" else int if type.name in WHOLE else None
    return str(value) if wanted and isinstance(value, wanted) else None


_VALUES = Approximation("always", HLL_ERROR)
_RANKS = Approximation("always", KLL_ERROR, of="rank")
ROWS = (
    Aggregate("count_distinct", 1, EQUAL, _count_distinct, Approximation("speed", HLL_ERROR)),
    Aggregate("approx_count_distinct", 1, EQUAL, _distinct, _VALUES),
    Aggregate(
        "percentile_approx",
        1,
        NUMBER,
        _percentile,
        _RANKS,
        parameters=(AggregateParameter("p", float, None, 0, 1),),
    ),
    Aggregate("median", 1, NUMBER, _median, _RANKS),
    Aggregate(
        "approx_top_k",
        1,
        ORDERED,
        _top_k,
        Approximation("always", TOP_K_ERROR, of="events"),
        parameters=(AggregateParameter("k", int, 5, 1, 500),),
        needs=("x",),
    ),
    Aggregate(
        "count_min",
        1,
        "STRING with a string literal, or a whole number with a whole literal",
        _count_min,
        Approximation("always", COUNT_MIN_ERROR, of="events"),
        parameters=(AggregateParameter("value", object),),
    ),
)
