"""The plan of an ad-hoc SQL query, and the result of cancelling one."""

from __future__ import annotations

from typing import Literal

import msgspec


class QueryPlan(msgspec.Struct, frozen=True):
    """The engine, the relations and the plan of a query."""

    by: Literal["store", "spark"]
    relations: list[str]
    sql: str  # as it would be run
    plan: str  # of the engine, as text


class QueryCancellation(msgspec.Struct, frozen=True):
    """Whether a query with this id was running and is being cancelled."""

    id: str
    stopped: bool
