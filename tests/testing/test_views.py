"""Each step of a SELECT: joins, names, groups, windows, order. Transcripts tell longer stories."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.core.errors import BadDefinition, UnknownColumn, UnknownName, Unsupported
from headrace.testing.reference import Reference, Timestamp

EVENTS = [
    {"user": "a", "ms": 1, "ts": Timestamp(1), "tags": ["x", "y"]},
    {"user": "b", "ms": 5, "ts": Timestamp(-1), "tags": []},
    {"user": "a", "ms": 3, "ts": None, "tags": None},
    {"user": None, "ms": None, "ts": Timestamp(10_000_000), "tags": [None]},
]
EVENTS = [event | {"_offset": i, "_partition": 0} for i, event in enumerate(EVENTS)]
TABLE = [{"user": "a", "team": "red"}, {"user": "a", "team": "blue"}, {"user": None, "team": "no"}]


def reference(**queries: str) -> Reference:
    return Reference({"s": ["user", "ms", "ts", "tags"]}, {"t": TABLE}, queries)


def answer(query: str, **others: str) -> list[tuple[Any, ...]]:
    rows = reference(v=query, **others).answer("v", {"s": EVENTS})
    return [tuple(row.values()) for row in rows]


def window(start: str, end: str) -> dict[str, str]:
    return {"start": start, "end": end}


BEFORE = window("1969-12-31T23:59:50Z", "1970-01-01T00:00:00Z")
FIRST = window("1970-01-01T00:00:00Z", "1970-01-01T00:00:10Z")
SECOND = window("1970-01-01T00:00:10Z", "1970-01-01T00:00:20Z")
TABLE_OF_QUERIES: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("SELECT ms FROM s WHERE ms > 1", [(5,), (3,)]),
    ("SELECT s.ms, team FROM s JOIN t ON s.user = t.user",
     [(1, "red"), (1, "blue"), (3, "red"), (3, "blue")]),
    ("SELECT ms, team FROM s LEFT JOIN t ON s.user = t.user AND ms > 2",
     [(1, None), (5, None), (3, "red"), (3, "blue"), (None, None)]),
    ("SELECT ms, team FROM s JOIN t ON s.user <=> t.user WHERE ms IS NULL", [(None, "no")]),
    ("SELECT user, tag FROM s LATERAL VIEW explode(tags) x AS tag",
     [("a", "x"), ("a", "y"), (None, None)]),
    ("SELECT ms, tag FROM s LATERAL VIEW OUTER explode(tags) x AS tag",
     [(1, "x"), (1, "y"), (5, None), (3, None), (None, None)]),
    ("SELECT user, sum(ms) AS n FROM s GROUP BY user", [("a", 4), ("b", 5), (None, None)]),
    ("SELECT S.User, Count(*) AS n FROM s GROUP BY USER", [("a", 2), ("b", 1), (None, 1)]),
    ("SELECT ms > 2 AS big, count(*) AS n FROM s GROUP BY big", [(False, 1), (True, 2), (None, 1)]),
    ("SELECT count(*) AS n, user FROM s GROUP BY 2", [(2, "a"), (1, "b"), (1, None)]),
    ("SELECT user, count(*) AS n FROM s GROUP BY ALL", [("a", 2), ("b", 1), (None, 1)]),
    ("SELECT upper(user) AS user, max(ms) AS m FROM s GROUP BY user HAVING max(ms) > 3",
     [("B", 5)]),
    ("SELECT -max(ms) AS ms FROM s GROUP BY user HAVING ms < -3", [(-5,)]),
    ("SELECT max(ms) AS ms FROM s GROUP BY user HAVING sum(ms) = 4", [(3,)]),
    ("SELECT count(*) AS n FROM s HAVING count(*) > 9", []),
    ("SELECT count(*) AS n FROM s WHERE false", [(0,)]),
    ("SELECT user, count(*) AS n FROM s WHERE false GROUP BY user", []),
    ("SELECT window(ts, '10 seconds') AS w, count(*) AS n FROM s GROUP BY window(ts, '10 seconds')",
     [(FIRST, 1), (BEFORE, 1), (SECOND, 1)]),
    ("SELECT window(ts, '10 seconds').start, ms FROM s WHERE ms = 1",
     [("1970-01-01T00:00:00Z", 1)]),
    ("SELECT ms FROM s ORDER BY ms", [(None,), (1,), (3,), (5,)]),
    ("SELECT ms FROM s ORDER BY ms DESC", [(5,), (3,), (1,), (None,)]),
    ("SELECT ms FROM s ORDER BY ms NULLS LAST LIMIT 2", [(1,), (3,)]),
    ("SELECT user, ms FROM s ORDER BY user DESC, -ms",
     [("b", 5), ("a", 3), ("a", 1), (None, None)]),
    ("SELECT user FROM s GROUP BY user ORDER BY count(*) DESC, 1 DESC LIMIT 1", [("a",)]),
    ("SELECT DISTINCT user FROM s", [("a",), ("b",), (None,)]),
    ("SELECT ms + 1 AS next, next * 2 AS twice FROM s WHERE ms = 1", [(2, 4)]),
    ("SELECT x.n FROM (SELECT count(*) AS n FROM s) x", [(4,)]),
    ("WITH x AS (SELECT ms AS n FROM s), y AS (SELECT max(n) AS n FROM x) SELECT n FROM y", [(5,)]),
    ("SELECT _offset FROM s WHERE user = 'b'", [(1,)]),
    ("SELECT max_by(ms, user) AS last FROM s", [(5,)]),
]  # fmt: skip


@pytest.mark.parametrize(("query", "expected"), TABLE_OF_QUERIES, ids=lambda x: str(x)[:70])
def test_a_query_has_its_answer(query: str, expected: list[tuple[Any, ...]]) -> None:
    assert answer(query) == expected


def test_star_is_the_declared_columns_in_order() -> None:
    assert reference(v="SELECT * FROM s").columns("v") == ("user", "ms", "ts", "tags")
    assert reference(v="SELECT x.*, team FROM s x JOIN t ON true").columns("v")[-1] == "team"


def test_names_are_kept_as_they_were_written() -> None:
    assert reference(v="SELECT USER, ms AS Ms FROM s").columns("v") == ("USER", "Ms")


def test_views_and_derived_streams_may_stand_on_each_other() -> None:
    found = answer(
        "SELECT n, count(*) AS users FROM per_user GROUP BY n ORDER BY n",
        per_user="SELECT user, count(*) AS n FROM known GROUP BY user",
        known="SELECT * FROM s WHERE user IS NOT NULL",
    )
    assert found == [(1, 1), (2, 1)]


def test_a_windows_fields_can_be_read_from_a_view() -> None:
    windows = "SELECT window(ts, '10 seconds') AS w FROM s WHERE ms = 1"
    assert answer("SELECT w.start, x.w.end AS finish FROM w x", w=windows) == [
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:10Z")
    ]


def test_a_derived_stream_keeps_the_place_in_the_log() -> None:
    rows = [
        {"user": u, "ms": 1, "_offset": o, "_partition": 0} for u, o in (("late", 7), ("early", 3))
    ]
    queries = {"d": "SELECT user, ms FROM s", "v": "SELECT max_by(user, ms) AS u FROM d"}
    assert reference(**queries).answer("v", {"s": rows}) == [{"u": "late"}]


@pytest.mark.parametrize(
    ("query", "condition", "sentence"),
    [
        ("SELECT page FROM s", UnknownColumn, "there is no column 'page'"),
        ("SELECT user FROM s JOIN t ON true", UnknownColumn, "column reference 'user' is"),
        ("SELECT a FROM nowhere", UnknownName, "there is no stream, table or view named 'nowhere'"),
        ("SELECT ms, count(*) AS n FROM s", BadDefinition, "the column 'ms' is neither grouped by"),
        ("SELECT ms, user AS MS FROM s", BadDefinition, "duplicate column name 'ms' in the"),
        ("SELECT ms FROM s GROUP BY 2", BadDefinition, "position 2 is not in the select"),
        ("SELECT FROM WHERE", BadDefinition, "the query cannot be parsed"),
        ("SELECT count(*) FROM s", Unsupported, "has no name"),
        ("SELECT s.ms FROM s RIGHT JOIN t ON true", Unsupported, "does not support RIGHT JOIN"),
        ("SELECT ms FROM s GROUP BY CUBE(ms)", Unsupported, "CUBE"),
        ("SELECT ms FROM s LIMIT 1 OFFSET 1", Unsupported, "does not support clause OFFSET"),
        ("SELECT 1 AS a UNION ALL SELECT 2", Unsupported, "interpreter supports only SELECT"),
        ("SELECT rank() OVER (ORDER BY ms) AS r FROM s", Unsupported, "does not support"),
    ],
)  # fmt: skip
def test_a_mistake_or_an_unknown_clause_is_said(
    query: str, condition: type[Exception], sentence: str
) -> None:
    with pytest.raises(condition, match=sentence):
        answer(query)
