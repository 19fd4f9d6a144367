"""Statistics of two numbers and of one: covariance, correlation, skewness, kurtosis.

The partials are counts, means, and sums of powers of the distances from the mean, as one text of
numbers. They are merged pairwise (serving/states/shapes.py), which stays exact for numbers far from
zero where sums of plain powers do not.
"""

from __future__ import annotations

from headrace.core.aggregate.model import (
    DOUBLE,
    NUMBER,
    TWO_NUMBERS,
    Aggregate,
    Lower,
    LoweredAggregate,
    Merge,
    ParameterValues,
    Partial,
    Types,
)

_N, _SQUARES = "count({x}){when}", "var_pop({x}){when} * count({x}){when}"
# Spark gives the third and fourth powers only as ratios; without spread there is no ratio.
_CUBES = f"coalesce(skewness({{x}}){{when}} * pow({_SQUARES}, 1.5D) / sqrt({_N}), 0D)"
_FOURTHS = f"coalesce((kurtosis({{x}}){{when}} + 3) * pow({_SQUARES}, 2D) / {_N}, 0D)"
_SHAPE = (_N, "avg({x}){when}", _SQUARES, _CUBES, _FOURTHS)
_PAIR = (
    _N,
    "avg({x}){when}",
    "avg({y}){when}",
    f"covar_pop({{x}}, {{y}}){{when}} * {_N}",
    _SQUARES,
    "var_pop({y}){when} * count({y}){when}",
)


def _numbers(merge: Merge, parts: tuple[str, ...]) -> Partial:
    text = ", ".join(f"cast({part} as string)" for part in parts)
    return Partial(merge, (f"CASE WHEN {_N} > 0 THEN concat_ws(' ', {text}) END",), ("TEXT",))


def _of(merge: Merge, parts: tuple[str, ...], name: str) -> Lower:
    partial = _numbers(merge, parts)

    def lower(types: Types, said: ParameterValues) -> LoweredAggregate | None:
        if not all(type.numeric for type in types):
            return None
        return LoweredAggregate((partial,), f"finish_{merge}({{0}}, '{name}')", DOUBLE)

    return lower


ROWS = (
    *(
        Aggregate(name, 2, TWO_NUMBERS, _of(Merge.PAIR, _PAIR, name), needs=("x", "y"))
        for name in ("covar_samp", "covar_pop", "corr")
    ),
    *(
        Aggregate(name, 1, NUMBER, _of(Merge.SHAPE, _SHAPE, name))
        for name in ("skewness", "kurtosis")
    ),
)
