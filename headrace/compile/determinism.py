"""A definition must be deterministic: batch and speed compute its events at different times.

Relative timestamps such as 'now' are found here; Spark's analyser finds everything else
(spark/determinism.py). tests/plans/error_uncertain_moment.sql has the message.
"""

from __future__ import annotations

import re

from sqlglot import exp

from headrace.core.errors import Unsupported
from headrace.core.origin import Origin
from headrace.define.dialect import sql_of

_MOMENT = re.compile(r"\s*(now|today|tomorrow|yesterday)\b.*", re.IGNORECASE)


def refuse_relative_times(tree: exp.Expr, origin: Origin | None) -> None:
    """Refuse TIMESTAMP 'now' and the like: Spark replaces it by a constant while parsing."""
    for cast in tree.find_all(exp.Cast):
        if isinstance(cast.this, exp.Literal) and _MOMENT.fullmatch(cast.this.name):
            raise not_deterministic(sql_of(cast.this), origin)


def not_deterministic(what: str, origin: Origin | None) -> Unsupported:
    return Unsupported(
        f"{what} is not deterministic",
        hint="a definition depends on its events only; use the current time in an ad-hoc query.",
        origin=origin,
    )
