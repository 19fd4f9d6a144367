"""The inputs and the result of a query: relations with typed columns."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.core.aggregate import Approximation


@dataclass(frozen=True, slots=True)
class AnswerColumn:
    """A column of a relation or of a result."""

    name: str
    type: str
    estimate: Approximation | None = None
    key: bool = False  # its values name rows and measure nothing
    lists: frozenset[str] = frozenset()  # the collected lists behind it, which may have been cut
    bounds: tuple[int, int] | None = None  # as in TypedSql
    rounded: str | None = None  # as in TypedSql


@dataclass(frozen=True, slots=True)
class ReadRelation:
    """Something to select from: DuckDB's SQL for it, and its columns."""

    sql: str
    columns: tuple[AnswerColumn, ...]
