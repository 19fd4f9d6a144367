"""What the compiler asks Spark: names, types, equality, and whether a query gives the same each
time. It is handed in, so that compiling needs no JVM of its own.
"""

from __future__ import annotations

from typing import Protocol

from headrace.core.origin import Origin


class Analyser(Protocol):
    """Spark, asked about queries that it does not run."""

    def relation(self, name: str, ddl: str) -> None:
        """Make an empty relation known."""

    def analyse(self, sql: str, origin: Origin, name: str | None = None) -> list[tuple[str, str]]:
        """The columns of a query, as (name, Spark type); with `name`, make the query known by
        it. One that would give something else at another time is refused.
        """

    def equal(self, sql: str) -> bool:
        """Whether the two columns of a query are one expression."""
