"""The interface of Spark's analyser: names, types, equality and determinism of queries. It is a
parameter of the compiler, so that compiling needs no JVM of its own.
"""

from __future__ import annotations

from typing import Protocol

from headrace.core.origin import Origin


class Analyser(Protocol):
    """Analyses queries without running them."""

    def relation(self, name: str, ddl: str) -> None:
        """Register an empty relation."""

    def analyse(self, sql: str, origin: Origin, name: str | None = None) -> list[tuple[str, str]]:
        """The columns of a query, as (name, Spark type); with `name`, register the query under it.
        A query that is not deterministic is refused.
        """

    def equal(self, sql: str) -> bool:
        """Whether the two columns of a query are the same expression."""
