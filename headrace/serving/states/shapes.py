"""Higher-order statistics of one number and of two, as texts of numbers, merged pairwise.

  shape  n, mean, and the sums of the second, third and fourth powers of the distances from it;
  pair   n, both means, the sum of the products of the distances, and both sums of their squares.
The formulas are Chan's and Pébay's: no sum of plain powers, so numbers far from zero keep their
digits. Without spread skewness, kurtosis and correlation are NULL, as in Spark. Spread that is
only rounding of the mean counts as none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce

Numbers = list[float]


def merge_shapes(states: Sequence[str]) -> str:
    return _merged(_add_shapes, states)


def merge_pairs(states: Sequence[str]) -> str:
    return _merged(_add_pairs, states)


def _merged(add: Callable[[Numbers, Numbers], Numbers], states: Sequence[str]) -> str:
    total: Numbers = reduce(add, [_read(state) for state in states])
    return " ".join(map(repr, total))


def _read(state: str) -> Numbers:
    return [float(word) for word in state.split()]


def _add_shapes(one: Numbers, other: Numbers) -> Numbers:
    (a, mean_a, a2, a3, a4), (b, mean_b, b2, b3, b4) = one, other
    n, step = a + b, mean_b - mean_a
    # Products, not powers: on overflow they become infinite instead of raising.
    two = step * step * a * b / n
    three, four = two * step * (a - b) / n, two * step * step * (a * a - a * b + b * b) / n / n
    cubes = a3 + b3 + three + 3 * step * (a * b2 - b * a2) / n
    fourths = a4 + b4 + four + 6 * step * step * (a * a * b2 + b * b * a2) / n / n
    fourths += 4 * step * (a * b3 - b * a3) / n
    return [n, mean_a + step * b / n, a2 + b2 + two, cubes, fourths]


def _add_pairs(one: Numbers, other: Numbers) -> Numbers:
    (a, x_a, y_a, xy_a, xx_a, yy_a), (b, x_b, y_b, xy_b, xx_b, yy_b) = one, other
    n, x, y = a + b, x_b - x_a, y_b - y_a
    weight = a * b / n
    return [
        n,
        x_a + x * b / n,
        y_a + y * b / n,
        xy_a + xy_b + x * y * weight,
        xx_a + xx_b + x * x * weight,
        yy_a + yy_b + y * y * weight,
    ]


def shape(state: str, name: str) -> float | None:
    """`skewness` or `kurtosis`."""
    n, mean, squares, cubes, fourths = _read(state)
    if not _spread(n, mean, squares):
        return None
    if name == "skewness":
        return math.sqrt(n) * cubes / squares / math.sqrt(squares)
    return n * fourths / squares / squares - 3


def pair(state: str, name: str) -> float | None:
    """`covar_pop`, `covar_samp` or `corr`."""
    n, mean_x, mean_y, products, squares_x, squares_y = _read(state)
    if name == "corr":
        spread = _spread(n, mean_x, squares_x) and _spread(n, mean_y, squares_y)
        return products / math.sqrt(squares_x) / math.sqrt(squares_y) if spread else None
    rest = n - (name == "covar_samp")
    return products / rest if rest else None


def _spread(n: float, mean: float, squares: float) -> bool:
    """Whether the spread is more than the rounding error of the mean of equal values."""
    rounding = mean * 2.0**-50
    return squares > n * rounding * rounding


def same_shapes(a: str, b: str) -> bool:
    names = ("skewness", "kurtosis")
    return _close(*([_read(s)[0], *(shape(s, name) for name in names)] for s in (a, b)))


def same_pairs(a: str, b: str) -> bool:
    return _close(*([_read(s)[0], pair(s, "corr")] for s in (a, b)))


def _close(ones: Sequence[float | None], others: Sequence[float | None]) -> bool:
    """Whether values agree to six digits: a ratio of sums that nearly cancel has no more."""
    pairs = zip(ones, others, strict=True)
    known = [(a, b) for a, b in pairs if a != b and not (a is None and b is None)]
    return all(
        a is not None and b is not None and math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6)
        for a, b in known
    )
