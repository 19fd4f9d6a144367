"""Decimals in states. They are stored as texts, of which only the type of a column says what they
were. tests/carry/test_decimals.py folds decimals onto stored states.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any


def with_decimals(state: Any) -> Any:
    """The state of a step over decimals, as it was before it was stored.

    >>> with_decimals(["1.50", None, 3])
    [Decimal('1.50'), None, 3]
    """
    if isinstance(state, str):
        return Decimal(state)
    return list(map(with_decimals, state)) if isinstance(state, list | tuple) else state
