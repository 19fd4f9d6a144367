"""An expression that has been compiled: its DuckDB SQL, its Spark type, and what is known of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from headrace.certified.types import FLOATS
from headrace.core.aggregate import Approximation, largest_error
from headrace.core.errors import Unsupported

Bounds = tuple[int, int]


@dataclass(frozen=True, slots=True)
class TypedSql:
    sql: str
    type: str
    estimate: Approximation | None = None  # None: exact
    literal: str | None = None  # the digits or the text, where it is a literal
    key: bool = False  # a key of a view, as it is
    lists: frozenset[str] = frozenset()  # the collected lists that it is made of
    # The smallest and the largest value that an integer can have, or a time in microseconds, where
    # more is known than its type.
    bounds: Bounds | None = None
    rounded: str | None = None  # the function whose last digits may be others in Spark
    deviation: str | None = None  # what in it may have another value in Spark

    def as_type(self, sql: str, type: str) -> TypedSql:
        """Another expression made of this one alone."""
        made = replace(self, sql=sql, type=type, literal=None, key=False, bounds=None)
        return made if type in FLOATS else made.deciding()

    def deciding(self) -> TypedSql:
        """The same where its last digits decide, as in a comparison, or in a whole number."""
        if self.rounded is None:
            return self
        what = f"what the last digits of '{self.rounded}' decide"
        return replace(self, rounded=None, deviation=what)


def combine(parts: Iterable[TypedSql], sql: str, type: str) -> TypedSql:
    """An expression computed from several, with the largest of their errors."""
    parts = tuple(part if type in FLOATS else part.deciding() for part in parts)
    lists = frozenset[str]().union(*(part.lists for part in parts))
    return TypedSql(
        sql,
        type,
        largest_error(part.estimate for part in parts),
        lists=lists,
        rounded=next((part.rounded for part in parts if part.rounded), None),
        deviation=next((part.deviation for part in parts if part.deviation), None),
    )


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


ORDER_BY_PART = "order by a part of the value."


# Certified SQL has NULL there, and Spark a value.
OUTSIDE_CALENDAR = "a computed date or time, which may lie outside the years 1 to 9999,"


def not_available(what: str, hint: str | None = None) -> Unsupported:
    return Unsupported(f"{what} is not available over views", hint=hint)
