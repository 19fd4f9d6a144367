"""Exact sums of decimals, as text.

The store has no decimals, so Python adds them. A sum may have more digits than Spark's 38; only the
finished value is bounded, so the order of the parts does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal

from headrace.core.storage import decimal_text

_CONTEXT = Context(prec=120, rounding=ROUND_HALF_UP)
# The scale of Spark's division before it rounds to the scale of the result.
_DIVISION_SCALE = 39


def add(states: Sequence[str]) -> str:
    total = Decimal(0)
    for state in states:
        total = _CONTEXT.add(total, Decimal(state))
    return f"{total:f}"


def total(
    state: str, precision: int, scale: int, count: int | None = None, low: str = "0"
) -> str | None:
    """The sum of a state and its low digits, or with a `count` the mean, as a stored decimal; None
    if it has more digits than its type.
    """
    value = _CONTEXT.add(Decimal(state), Decimal(low))
    if count == 0:
        return None
    if count is not None:
        value = _rounded(_CONTEXT.divide(value, Decimal(count)), _DIVISION_SCALE)
    value = _rounded(value, scale)
    fits = value.copy_abs() < Decimal(10) ** (precision - scale)
    return decimal_text(value, precision, scale) if fits else None


def same(a: str, b: str) -> bool:
    return a == b or Decimal(a) == Decimal(b)


def _rounded(value: Decimal, scale: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _CONTEXT)
