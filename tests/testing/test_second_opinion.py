"""The reference's windows, running values and joins are those of DuckDB, written in plain SQL.

The plain SQL says each thing another way: sessions and punctuated windows by running sums of where
one begins, count windows by row numbers, lonely rows by NOT EXISTS and a watermark.
"""

from __future__ import annotations

import math
from typing import Any

import duckdb
import pytest
from chance import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from testing.streams import Event, answer


def events_until(seconds: int) -> st.SearchStrategy[list[Event]]:
    event = st.tuples(
        st.one_of(st.none(), st.integers(0, seconds)),
        st.sampled_from(["a", "b", None]),
        st.one_of(st.none(), st.integers(0, 9)),
    )
    return st.lists(event, max_size=12)


events = events_until(30)
# Few moments, so that events meet on the very edges of a bound.
crowded = events_until(12)
OVER = "OVER (PARTITION BY k ORDER BY s, place ROWS UNBOUNDED PRECEDING)"
BEFORE = "OVER (PARTITION BY k ORDER BY s, place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"


CONNECTION = duckdb.connect()


def duck(query: str, **streams: list[Event]) -> list[tuple[Any, ...]]:
    """The rows of a query in which each stream is a table of (s, k, x, place), times known."""
    for name, said in streams.items():
        CONNECTION.execute(
            f"CREATE OR REPLACE TEMP TABLE {name} (s INT, k VARCHAR, x INT, place INT)"
        )
        rows = [(s, k, x, i) for i, (s, k, x) in enumerate(said) if s is not None]
        if rows:
            marks = ", ".join(["(?, ?, ?, ?)"] * len(rows))
            values = [value for row in rows for value in row]
            CONNECTION.execute(f"INSERT INTO {name} VALUES {marks}", values)
    return CONNECTION.execute(query).fetchall()


def same(ours: list[tuple[Any, ...]], theirs: list[tuple[Any, ...]]) -> bool:
    def key(row: tuple[Any, ...]) -> list[tuple[bool, str]]:
        return [(value is None, str(value)) for value in row]

    return sorted(map(plain, ours), key=key) == sorted(map(plain, theirs), key=key)


def plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        round(float(v), 9) if isinstance(v, int | float) and math.isfinite(v) else v for v in row
    )


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("sum(x)", f"sum(x) {OVER}"),
        ("count(x)", f"count(x) {OVER}"),
        ("avg(x)", f"avg(x) {OVER}"),
        ("min(x)", f"min(x) {OVER}"),
        ("max(x)", f"max(x) {OVER}"),
        ("first_value(x)", f"first_value(x) {OVER}"),
        ("last_value(x)", f"last_value(x) {OVER}"),
        ("lag(x)", "lag(x) OVER (PARTITION BY k ORDER BY s, place)"),
        ("row_number()", f"row_number() {OVER}"),
        ("last_known(x)", f"last_value(x IGNORE NULLS) {OVER}"),
        ("delta(x)", f"x - last_value(x IGNORE NULLS) {BEFORE}"),
        ("rate(x)",
         f"(x - last_value(x IGNORE NULLS) {BEFORE})"
         f" / nullif(s - last_value(CASE WHEN x IS NOT NULL THEN s END IGNORE NULLS) {BEFORE}, 0)"),
    ],
)  # fmt: skip
@settings(max_examples=examples(15))
@given(said=events)
def test_running_values(ours: str, theirs: str, said: list[Event]) -> None:
    query = f"SELECT k, x, {ours} OVER (PARTITION BY k ORDER BY ts) AS y FROM t"
    assert same(answer(query, t=said), duck(f"SELECT k, x, {theirs} FROM t", t=said))


NUMBERED = "(SELECT *, row_number() OVER (PARTITION BY k ORDER BY s, place) - 1 AS n FROM t)"


@settings(max_examples=examples(40))
@given(said=events, n=st.integers(1, 4), slide=st.integers(1, 4))
def test_count_windows(said: list[Event], n: int, slide: int) -> None:
    call = f"count_window({n}, {min(n, slide)})"
    theirs = f"""
        SELECT k, w, count(*), sum(x) FROM {NUMBERED}, unnest(range(-{n}, 20)) AS windows(w)
        WHERE w % {min(n, slide)} = 0 AND n >= w AND n < w + {n} GROUP BY k, w"""
    query = f"SELECT k, {call} AS w, count(*) AS c, sum(x) AS x FROM t GROUP BY k, {call}"
    assert same(answer(query, t=said), duck(theirs, t=said))


@settings(max_examples=examples(40))
@given(said=events)
def test_punctuated_windows(said: list[Event]) -> None:
    call = "punctuated_window(x > 6)"
    ended = f"coalesce(sum(CASE WHEN x > 6 THEN 1 ELSE 0 END) {BEFORE}, 0)"
    theirs = f"SELECT k, w, count(*) FROM (SELECT k, {ended} AS w FROM t) GROUP BY k, w"
    query = f"SELECT k, {call} AS w, count(*) AS c FROM t GROUP BY k, {call}"
    assert same(answer(query, t=said), duck(theirs, t=said))


@settings(max_examples=examples(40))
@given(said=events, gap=st.integers(1, 6))
def test_sessions(said: list[Event], gap: int) -> None:
    call = f"session_window(ts, '{gap} seconds')"
    theirs = f"""
        WITH begun AS (SELECT *, s > lag(s, 1, -99) OVER o + {gap} AS new FROM t
                       WINDOW o AS (PARTITION BY k ORDER BY s, place)),
             numbered AS (SELECT *, sum(new::INT) {OVER} AS number FROM begun)
        SELECT k, min(s), max(s) + {gap}, count(*) FROM numbered GROUP BY k, number"""
    query = f"""SELECT k, CAST({call}.start AS BIGINT) AS b, CAST({call}.end AS BIGINT) AS e,
        count(*) AS c FROM t GROUP BY k, {call}"""
    assert same(answer(query, t=said), duck(theirs, t=said))


MET = "l.k = r.k AND r.s BETWEEN l.s - 2 AND l.s + 5"
JOINS = {
    "INNER": f"SELECT l.x, r.x FROM l JOIN r ON {MET}",
    "LEFT": f"""SELECT l.x, r.x FROM l JOIN r ON {MET} UNION ALL
        SELECT x, NULL FROM l WHERE NOT EXISTS (FROM r WHERE {MET})
        AND s + 5 < (SELECT max(s) FROM r) - 3""",
    "RIGHT": f"""SELECT l.x, r.x FROM l JOIN r ON {MET} UNION ALL
        SELECT NULL, x FROM r WHERE NOT EXISTS (FROM l WHERE {MET})
        AND s + 2 < (SELECT max(s) FROM l) - 3""",
    "LEFT SEMI": f"SELECT x, NULL FROM l WHERE EXISTS (FROM r WHERE {MET})",
}
JOINS["FULL"] = JOINS["LEFT"] + " UNION ALL " + JOINS["RIGHT"].partition("UNION ALL")[2]


@pytest.mark.parametrize("kind", JOINS)
@settings(max_examples=examples(40))
@given(left=crowded, right=crowded)
def test_joins(kind: str, left: list[Event], right: list[Event]) -> None:
    right_item = "CAST(NULL AS INT)" if kind == "LEFT SEMI" else "r.x"
    query = f"""SELECT l.x AS a, {right_item} AS b FROM l {kind} JOIN r ON l.k = r.k
        AND r.ts BETWEEN l.ts - INTERVAL 2 SECONDS AND l.ts + INTERVAL 5 SECONDS"""
    assert same(answer(query, 3, l=left, r=right), duck(JOINS[kind], l=left, r=right))
