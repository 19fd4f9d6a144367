"""Computed columns: the values of expressions over the stored columns of one event.

tests/transcripts/computed_*.yaml say what that means.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.testing.reference.expressions import evaluate
from headrace.testing.reference.names import HIDDEN, NameScope, VisibleColumn, read, resolve


def computed(expressions: Mapping[str, str], event: Mapping[str, Any]) -> dict[str, Any]:
    """The values of expressions over an event that has its stored and hidden columns.

    >>> computed({"total": "CAST(price * many AS BIGINT)"}, {"price": 3, "many": 2})
    {'total': 6}
    """
    scope = NameScope(
        tuple(VisibleColumn("event", name) for name in dict.fromkeys((*event, *HIDDEN)))
    )
    row = {("event", name.lower()): value for name, value in event.items()}
    return {
        name: evaluate(resolve(read(f"SELECT {sql} AS value").expressions[0].this, scope), row)
        for name, sql in expressions.items()
    }
