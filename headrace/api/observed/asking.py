"""Questions in SQL, beside their answers: how one would be answered, and that one was stopped."""

from __future__ import annotations

from typing import Literal

import msgspec


class QueryPlan(msgspec.Struct, frozen=True):
    """Who would answer a query, of what, and how."""

    by: Literal["store", "spark"]
    relations: list[str]
    sql: str  # as it would be run
    plan: str  # of the one who would run it, as text


class Stopped(msgspec.Struct, frozen=True):
    """Whether a query of this id ran, and was told to stop."""

    id: str
    stopped: bool
