"""Windows, and how stored rows are regrouped into the windows of an answer.

A row of a sliding view is one pane, and every window consists of whole panes: an event is one
update however many windows it is in, and reading distributes each pane over its windows. A row of a
session view is an interval, and intervals that overlap or touch are one session: merging them is
associative and commutative, so it does not matter which layer has which part, or in what order.
Both are SQL over integers, the same in Spark and in the store. Each kind of window is a class; the
differences between them are in its methods only.
tests/laws/test_windows.py checks them against the definition.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import msgspec

from headrace.core.time import duration_text, iso

Columns = Sequence[str]
Span = tuple[int, int]  # the first and the last start that windows may have


class _Window(msgspec.Struct, frozen=True, tag_field="kind"):
    """Windows over integers, such as the microseconds of event time. A plan stores all four fields
    of every kind; unused ones are zero.
    """

    size: int = 0
    slide: int = 0
    offset: int = 0
    ends: str = ""  # Spark SQL over an event

    joins: ClassVar[bool] = False  # whether stored rows with different keys may be merged
    reading: ClassVar[str] = ""  # how stored rows become windows, in words

    @property
    def pane(self) -> int:
        """The greatest common divisor of size and slide."""
        return math.gcd(self.size, self.slide)

    @property
    def reach(self) -> int:
        """The distance from the start of a window to the start of its last pane."""
        return self.size - self.pane

    @property
    def regroups(self) -> bool:
        """Whether stored rows are regrouped into the windows of an answer."""
        return self.joins or self.reach > 0

    def starts_near(self, time_us: int) -> tuple[int, ...]:
        """The window starts around a time; empty if a window may start at any time."""
        return ()

    def items(self, sql: str, column: str) -> list[str]:
        """The select items of the map step for the key `column`, whose SQL is given."""
        return [f"{sql} AS {column}"]

    def holds(self, column: str) -> str:
        """SQL over the map step: whether an event is in a window."""
        return f"{column} IS NOT NULL"

    def stored_where(self, column: str, lower: str, upper: str, value: str) -> list[str]:
        """SQL over stored rows: true for every part of the windows whose start compares with a
        value by these operators, of which one may be empty.
        """
        below = [f"{column} {lower} {value}"] if lower else []
        return below + ([f"{column} {upper} {value} + {self.reach}"] if upper else [])

    def regrouped(
        self, rows: str, column: str, columns: Columns, others: Columns, span: Span | None = None
    ) -> str:
        """Stored rows regrouped into windows. `columns` are their columns, `others` their other
        keys; only windows that begin in the `span` are needed.
        """
        return rows


class SlidingWindow(_Window, frozen=True, tag="sliding"):
    """[w, w + size) for every w that is `offset` more than a multiple of `slide`; where slide and
    size are equal they tumble.

    >>> hour = SlidingWindow(size=60, slide=25)
    >>> hour.pane, hour.reach, hour.end("k0")
    (5, 55, 'k0 + 60')
    """

    reading: ClassVar[str] = "each window is put together of the panes that lie in it"

    @property
    def words(self) -> str:
        """The description of the windows in `headrace explain`."""
        size, slide, pane = map(self._length, (self.size, self.slide, self.pane))
        panes = f" every {slide}, kept as panes of {pane}" if self.regroups else ""
        return f"windows of {size}{panes}"

    def _length(self, number: int) -> str:
        return duration_text(number)

    def starts_near(self, time_us: int) -> tuple[int, ...]:
        before = time_us - (time_us - self.offset) % self.slide
        return before, before + self.slide

    def key_sql(self, time: str) -> str:
        """The stored key of an event: its pane."""
        shift = self.offset % self.pane
        return f"({time} - pmod({f'{time} - {shift}' if shift else time}, {self.pane}))"

    def end(self, column: str) -> str:
        """SQL for the end of the window that begins at `column`."""
        return f"{column} + {self.size}"

    def regrouped(
        self, rows: str, column: str, columns: Columns, others: Columns, span: Span | None = None
    ) -> str:
        """Each pane distributed over its windows. With a `span`, its windows are enumerated and
        joined with their panes; else the windows of each pane are enumerated, so that windows
        without a pane are never generated.
        """
        if span is None:
            start, series, holds = self._of_pane(f"panes.{column}")
        else:
            first, last = span
            step = f"SELECT n + {self.slide} FROM numbers WHERE n + {self.slide} <= {last}"
            first += (self.offset - first) % self.slide
            start, series = "numbers.n", f"SELECT {first} WHERE {first} <= {last} UNION ALL {step}"
            holds = f"panes.{column} >= {start} AND panes.{column} < {start} + {self.size}"
        items = [f"{start} AS {c}" if c == column else f"panes.{c}" for c in columns]
        numbers = f"WITH RECURSIVE numbers(n) AS ({series}) SELECT n FROM numbers"
        # The order of the join is the order of execution.
        sides = [f"({rows}) AS panes", f"({numbers}) AS numbers"]
        joined = " CROSS JOIN ".join(sides if span is None else reversed(sides))
        return f"SELECT {', '.join(items)} FROM {joined} WHERE {holds}"

    def _of_pane(self, pane: str) -> tuple[str, str, str]:
        """The n-th window before the newest that includes a pane: SQL of its start, of all n, and
        of whether it includes the pane.
        """
        past = f"({pane} - {self.offset})" if self.offset else pane
        newest = f"{pane} - ({past} % {self.slide} + {self.slide}) % {self.slide}"
        start = f"({newest} - numbers.n * {self.slide})"
        last = (self.size - 1) // self.slide
        series = f"SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < {last}"
        return start, series, f"{start} + {self.size} > {pane}"


class CountWindow(SlidingWindow, frozen=True, tag="count"):
    """Sliding windows over the numbers of a key's events."""

    def _length(self, number: int) -> str:
        return f"{number:,} event{'s' if number != 1 else ''}"


class LandmarkWindow(_Window, frozen=True, tag="landmark"):
    """It begins at `offset` and never ends."""

    @property
    def words(self) -> str:
        return f"from {iso(self.offset)} on"

    def starts_near(self, time_us: int) -> tuple[int, ...]:
        return (self.offset,)

    def key_sql(self, time: str) -> str:
        """The stored key of an event: the landmark."""
        return f"CASE WHEN {time} >= {self.offset} THEN {self.offset} END"

    def end(self, column: str) -> str:
        return "NULL"


class SessionWindow(_Window, frozen=True, tag="session"):
    """Intervals of events that overlap or touch are merged; each ends at `ends`. An event has an
    interval; its session is known only after merging.
    """

    joins: ClassVar[bool] = True
    reading: ClassVar[str] = "intervals that touch are joined to one session"
    words: ClassVar[str] = "sessions"

    def items(self, sql: str, column: str) -> list[str]:
        return [f"{sql} AS {from_column(column)}", f"{self.ends} AS {end_column(column)}"]

    def holds(self, column: str) -> str:
        return f"{end_column(column)} > {from_column(column)}"

    def key_sql(self, time: str) -> str:
        """The stored key of an event: its own time."""
        return time

    def end(self, column: str) -> str:
        return end_column(column)

    def stored_where(self, column: str, lower: str, upper: str, value: str) -> list[str]:
        # An interval that ends before the value is in no session that begins at or after it.
        return [f"{end_column(column)} >= {value}"] if lower else []

    def regrouped(
        self, rows: str, column: str, columns: Columns, others: Columns, span: Span | None = None
    ) -> str:
        items = [f"{c} AS {from_column(c)}" if c == column else c for c in columns]
        return coalesced(f"SELECT {', '.join(items)} FROM ({rows})", column, others)


WindowPlan = SlidingWindow | CountWindow | LandmarkWindow | SessionWindow


def end_column(column: str) -> str:
    """Where the end of an interval is stored, beside the key column that holds its start."""
    return f"{column}_end"


def from_column(column: str) -> str:
    """The start of the interval of an event or a stored row, before sessions are merged."""
    return f"{column}_from"


def coalesced(rows: str, column: str, others: Columns) -> str:
    """Rows with an interval, with the start of their session added as `column`."""
    start, end = from_column(column), end_column(column)
    over = f"PARTITION BY {', '.join(others)} ORDER BY {start}" if others else f"ORDER BY {start}"
    before = f"max({end}) OVER ({over} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    # A row that no earlier one reaches begins a session; all others have the latest start so far,
    # including their peers (RANGE frame), because the order of peers is not deterministic.
    first = f"CASE WHEN {start} <= {before} THEN NULL ELSE {start} END AS _first"
    session = f"max(_first) OVER ({over}) AS {column}"
    return f"SELECT *, {session} FROM (SELECT *, {first} FROM ({rows}) AS intervals) AS firsts"
