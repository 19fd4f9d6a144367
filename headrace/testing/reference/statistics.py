"""Percentiles, covariance, skewness and kurtosis of a group, in fractions and rounded once, at the
end.

percentile_approx(x, p) is the smallest value that at least the share p of the values does not
exceed; median is the middle one or the mean of the two in the middle. What needs spread (corr,
skewness, kurtosis) is NULL without it, and covar_samp of one pair is NULL.
tests/testing/test_aggregates.py has a table of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from headrace.testing.reference.casts import number
from headrace.testing.reference.values import Value

Tuples = Sequence[tuple[Value, ...]]


def percentile(tuples: Tuples, p: Value) -> Value:
    values = sorted(number(x) for (x,) in tuples)
    # As it was written: the double of 0.9 is a little more than that.
    place = max(math.ceil(Fraction(str(p)) * len(values)), 1)
    return values[place - 1] if values else None


def median(tuples: Tuples) -> float | None:
    values = sorted(Fraction(number(x)) for (x,) in tuples)
    middle = values[(len(values) - 1) // 2 : len(values) // 2 + 1]
    return float(sum(middle) / len(middle)) if middle else None


def covariance(spare: int) -> Callable[[Tuples], float | None]:
    """The mean product of the distances, over `n - spare` pairs."""

    def compute(tuples: Tuples) -> float | None:
        rest = len(tuples) - spare
        return float(_power(tuples, 1, 1) / rest) if rest > 0 else None

    return compute


def correlation(tuples: Tuples) -> float | None:
    x, y = _power(tuples, 2, 0), _power(tuples, 0, 2)
    return float(_power(tuples, 1, 1)) / _root(x) / _root(y) if x and y else None


def skewness(tuples: Tuples) -> float | None:
    squares = _power(tuples, 2)
    cubes = float(_power(tuples, 3) / squares) if squares else 0.0
    return math.sqrt(len(tuples)) * cubes / _root(squares) if squares else None


def kurtosis(tuples: Tuples) -> float | None:
    squares = _power(tuples, 2)
    return float(len(tuples) * _power(tuples, 4) / squares**2 - 3) if squares else None


def _power(tuples: Tuples, *powers: int) -> Fraction:
    """The sum over all tuples of the product of each distance from its mean to its power."""
    columns = [
        [Fraction(number(value)) for value in column] for column in zip(*tuples, strict=True)
    ]
    means = [sum(column) / len(column) for column in columns]
    total = Fraction(0)
    for values in zip(*columns, strict=True):
        distances = zip(values, means, powers, strict=True)
        total += math.prod((value - mean) ** power for value, mean, power in distances)
    return total


def _root(value: Fraction) -> float:
    return math.sqrt(float(value))
