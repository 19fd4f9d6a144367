"""The relations of FROM, and the rows that a SELECT reads from them.

A `Table` is a stream's events, a table's rows or a query's answer. A `SelectInput` is the rows in
reach of one SELECT, with a key for each column. Either has a `Clock` if it is a stream with a
watermark, or derived from one with its time column: a table and the answer of a view have none.
tests/testing/test_views.py and tests/testing/test_joins.py check it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from headrace.testing.reference.names import NameScope, VisibleColumn
from headrace.testing.reference.values import Key, Row, Value


@dataclass(frozen=True, slots=True)
class Clock:
    """Which column is the stream's event time, and how far its watermark is; None before all."""

    key: Key
    watermark_us: int | None

    def passed(self, moment_us: int) -> bool:
        """Whether every event dated then would now be late."""
        return self.watermark_us is not None and moment_us < self.watermark_us

    def slower(self, other: Clock | None) -> Clock:
        """This clock, no further than the other."""
        watermarks = [clock.watermark_us for clock in (self, other) if clock]
        known = [us for us in watermarks if us is not None]
        return Clock(self.key, min(known) if len(known) == len(watermarks) else None)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows by column name in lower case; `names` are the columns as they were written."""

    names: tuple[str, ...]
    rows: list[dict[str, Value]]
    clock: Clock | None = None


@dataclass(frozen=True, slots=True)
class SelectInput:
    """The rows in reach of a SELECT."""

    fields: tuple[VisibleColumn, ...]
    rows: list[Row]
    clock: Clock | None = None

    @property
    def scope(self) -> NameScope:
        return NameScope(self.fields)


TableLookup = Callable[[str], Table]  # what a name in FROM stands for
QueryRunner = Callable[[exp.Select, TableLookup], Table]  # how a query inside FROM is answered
