"""Windows are their definition: panes spread over windows, and intervals joined into sessions.

The SQL runs in DuckDB, as it does when a view is read, against a few lines of Python that say what
a window is. The seam with Spark is tests/laws/test_seam.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import duckdb
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.compile.windows import SlidingWindow, coalesced

WINDOWS = st.tuples(st.integers(1, 30), st.integers(1, 30), st.integers(-40, 40)).map(
    lambda t: SlidingWindow(max(t[:2]), min(t[:2]), t[2] % min(t[:2]))
)
AXIS = st.lists(st.integers(-60, 60), max_size=12)
# (key, start, length): starts that meet, touch and miss each other by one.
INTERVALS = st.lists(
    st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 40), st.integers(1, 6)), max_size=14
)


def select(rows: Sequence[tuple[object, ...]], names: str) -> str:
    values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
    columns = ", ".join(f"col{n} AS {name}" for n, name in enumerate(names.split()))
    return f"SELECT {columns} FROM (VALUES {values})"


def _literal(value: object) -> str:
    return "NULL" if value is None else repr(value)


def windows_of(moment: int, window: SlidingWindow) -> list[int]:
    return [
        start
        for start in range(moment - window.size + 1, moment + 1)
        if (start - window.offset) % window.slide == 0
    ]


@given(window=WINDOWS, moments=AXIS.filter(bool))
@example(window=SlidingWindow(600, 1), moments=[5])
@example(window=SlidingWindow(10, 4, 3), moments=[-1, 0, 9])
def test_every_event_is_in_the_windows_that_hold_it(
    window: SlidingWindow, moments: list[int]
) -> None:
    shift = window.offset % window.pane
    panes = Counter(m - (m - shift) % window.pane for m in moments)
    rows = select(sorted(panes.items()), "w n")
    found = duckdb.connect().execute(
        f"SELECT w, sum(n) FROM ({window.regrouped(rows, 'w', ['w', 'n'], [])}) GROUP BY w"
    )
    assert dict(found.fetchall()) == Counter(
        start for m in moments for start in windows_of(m, window)
    )


@given(
    window=WINDOWS, moments=AXIS.filter(bool), first=st.integers(-70, 70), more=st.integers(0, 50)
)
def test_windows_of_a_span_are_those_that_begin_in_it(
    window: SlidingWindow, moments: list[int], first: int, more: int
) -> None:
    shift = window.offset % window.pane
    panes = Counter(m - (m - shift) % window.pane for m in moments)
    rows, span = select(sorted(panes.items()), "w n"), (first, first + more)
    found = duckdb.connect().execute(
        f"SELECT w, sum(n) FROM ({window.regrouped(rows, 'w', ['w', 'n'], [], span)}) GROUP BY w"
    )
    starts = Counter(start for m in moments for start in windows_of(m, window))
    assert dict(found.fetchall()) == {w: n for w, n in starts.items() if first <= w <= first + more}


@given(window=WINDOWS)
def test_a_window_is_made_of_whole_panes(window: SlidingWindow) -> None:
    for start in windows_of(100, window):
        assert (start - window.offset % window.pane) % window.pane == 0
        assert window.size % window.pane == 0


def sessions_of(intervals: Sequence[tuple[str | None, int, int]]) -> set[tuple[object, ...]]:
    found: list[list[int]] = []
    keys: list[str | None] = []
    for key, start, length in sorted(intervals, key=lambda i: (str(i[0]), i[1])):
        if found and keys[-1] == key and start <= found[-1][1]:
            found[-1][1] = max(found[-1][1], start + length)
            found[-1][2] += 1
        else:
            keys.append(key)
            found.append([start, start + length, 1])
    return {(key, *session) for key, session in zip(keys, found, strict=True)}


def joined(rows: str) -> str:
    sessions = coalesced(rows, "w", ["k"])
    return f"SELECT k, w, max(w_end) AS w_end, sum(n) AS n FROM ({sessions}) GROUP BY k, w"


@given(intervals=INTERVALS.filter(bool), data=st.data())
@example(intervals=[("a", 0, 5), ("a", 5, 5), ("a", 11, 5)], data=None)
def test_intervals_that_touch_are_one_session_in_whatever_parts_they_come(
    intervals: list[tuple[str | None, int, int]], data: st.DataObject | None
) -> None:
    cut = data.draw(st.integers(0, len(intervals))) if data else 1
    parts = []
    for part in (intervals[:cut], intervals[cut:]):
        if part:
            rows = select([(k, at, at + length, 1) for k, at, length in part], "k w_from w_end n")
            parts.append(f"SELECT k, w AS w_from, w_end, n FROM ({joined(rows)})")
    found = duckdb.connect().execute(joined(" UNION ALL ".join(parts))).fetchall()
    assert set(found) == sessions_of(intervals)
    assert len(found) == len(set(found))
