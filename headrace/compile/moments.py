"""What a definition may not say of the present: its events are computed at different times.

A word such as 'now' is found here; what else moves, Spark's analyser knows (spark/determinism.py).
tests/plans/error_uncertain_moment.sql has the sentence.
"""

from __future__ import annotations

import re

from sqlglot import exp

from headrace.core.errors import Unsupported
from headrace.core.origin import Origin
from headrace.define.dialect import sql_of

_MOMENT = re.compile(r"\s*(now|today|tomorrow|yesterday)\b.*", re.IGNORECASE)


def refuse_moving_moments(tree: exp.Expr, origin: Origin | None) -> None:
    """TIMESTAMP 'now' is the moment at which Spark reads it, and no trace is left of the word."""
    for cast in tree.find_all(exp.Cast):
        if isinstance(cast.this, exp.Literal) and _MOMENT.fullmatch(cast.this.name):
            raise not_deterministic(sql_of(cast.this), origin)


def not_deterministic(what: str, origin: Origin | None) -> Unsupported:
    return Unsupported(
        f"{what} gives another value each time",
        hint="a definition speaks of its events only; ask about the present in a query.",
        origin=origin,
    )
