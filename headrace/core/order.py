"""The order of values, which is Spark's: NaN equals itself and is above every other number."""

from __future__ import annotations

from typing import Any

# Only NaN differs from itself.


def equal(x: Any, y: Any) -> bool:
    return bool(x == y or (x != x and y != y))


def below(x: Any, y: Any) -> bool:
    """
    >>> below(1.0, float("nan")), below(float("nan"), 1.0)
    (True, False)
    """
    return bool(x < y or (y != y and x == x))
