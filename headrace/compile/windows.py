"""Windows, and how the rows that are stored become the windows that are answered.

A row of a sliding view holds one pane, and every window is made of whole panes: an event costs one
update however many windows it is in, and reading spreads each pane over its windows. A row of a
session view holds an interval, and intervals that overlap or touch are one session: joining them is
associative and commutative, so it does not matter which layer held which part, or in what order.
Both are plain SQL over whole numbers, the same in Spark and in the store.
tests/laws/test_windows.py checks them against the definition.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec


class WindowPlan(msgspec.Struct, frozen=True):
    """Windows over an axis of whole numbers, such as the microseconds of event time.

    `sliding` windows are [w, w + size) for every w that is `offset` more than a multiple of
    `slide`; where slide and size are equal they tumble. A `landmark` window begins at `offset` and
    never ends. A `session` joins the intervals of its events, each of which ends at `ends`.

    >>> hour = WindowPlan("sliding", size=60, slide=25)
    >>> hour.pane, hour.reach, hour.end("k0")
    (5, 55, 'k0 + 60')
    """

    kind: str
    size: int = 0
    slide: int = 0
    offset: int = 0
    ends: str = ""  # Spark SQL over an event

    @property
    def pane(self) -> int:
        """The longest step of which size and slide are multiples."""
        return math.gcd(self.size, self.slide)

    @property
    def reach(self) -> int:
        """How far after the start of a window its last pane begins."""
        return self.size - self.pane

    @property
    def joins(self) -> bool:
        """Whether stored rows become one when read, although their keys differ."""
        return self.kind == "session"

    @property
    def regroups(self) -> bool:
        """Whether the windows of an answer are other rows than those that are stored."""
        return self.joins or self.reach > 0

    def end(self, column: str) -> str:
        """SQL for the end of the window that begins at `column`."""
        if self.joins:
            return end_column(column)
        return "NULL" if self.kind == "landmark" else f"{column} + {self.size}"


def end_column(column: str) -> str:
    """Where the end of an interval is stored, beside the key column that holds its start."""
    return f"{column}_end"


def from_column(column: str) -> str:
    """Where the interval of an event or of a stored row begins, while its session is sought."""
    return f"{column}_from"


Span = tuple[int, int]  # the first and the last start that windows may have


def spread(
    rows: str, column: str, window: WindowPlan, columns: Sequence[str], span: Span | None = None
) -> str:
    """Rows of panes as rows of the windows that the panes are in; `columns` are what they have.

    Within a `span` the windows are counted and look for their panes; else each pane looks for its
    windows, so that no window without a pane is ever thought of.
    """
    if span is None:
        start, series, holds = _windows_of_panes(f"panes.{column}", window)
    else:
        first, last = span
        step = f"SELECT n + {window.slide} FROM numbers WHERE n + {window.slide} <= {last}"
        first += (window.offset - first) % window.slide
        start, series = "numbers.n", f"SELECT {first} WHERE {first} <= {last} UNION ALL {step}"
        holds = f"panes.{column} >= {start} AND panes.{column} < {start} + {window.size}"
    items = [f"{start} AS {c}" if c == column else f"panes.{c}" for c in columns]
    numbers = f"WITH RECURSIVE numbers(n) AS ({series}) SELECT n FROM numbers"
    # The join is written in the order in which it is done.
    sides = [f"({rows}) AS panes", f"({numbers}) AS numbers"]
    joined = " CROSS JOIN ".join(sides if span is None else reversed(sides))
    return f"SELECT {', '.join(items)} FROM {joined} WHERE {holds}"


def _windows_of_panes(pane: str, window: WindowPlan) -> tuple[str, str, str]:
    """The n-th window before the newest that holds a pane: its start, every n, and whether it does
    hold it.
    """
    past = f"({pane} - {window.offset})" if window.offset else pane
    newest = f"{pane} - ({past} % {window.slide} + {window.slide}) % {window.slide}"
    start = f"({newest} - numbers.n * {window.slide})"
    last = (window.size - 1) // window.slide
    series = f"SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < {last}"
    return start, series, f"{start} + {window.size} > {pane}"


def coalesced(rows: str, column: str, others: Sequence[str]) -> str:
    """Rows with an interval, each with the start of its session added as `column`."""
    start, end = from_column(column), end_column(column)
    over = f"PARTITION BY {', '.join(others)} ORDER BY {start}" if others else f"ORDER BY {start}"
    before = f"max({end}) OVER ({over} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    # A row that no earlier one reaches begins a session; all others take the latest beginning, of
    # their peers too, because peers may come in another order here than where they were compared.
    first = f"CASE WHEN {start} <= {before} THEN NULL ELSE {start} END AS _first"
    session = f"max(_first) OVER ({over}) AS {column}"
    return f"SELECT *, {session} FROM (SELECT *, {first} FROM ({rows}) AS intervals) AS firsts"
