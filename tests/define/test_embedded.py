"""Each clause of a rule or watch that takes SQL gives its piece of it."""

from __future__ import annotations

import pytest

from headrace.define.definitions import RuleDefinition, WatchDefinition
from headrace.define.embedded import embedded_queries
from headrace.define.statements import read_statements

PATTERN = (
    "SELECT last_v FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES last(a.v) AS last_v "
    "PATTERN (a b$) DEFINE a AS a.v > 1, b AS f(b.v))"
)


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ("RULE r AS SELECT a FROM s WHERE b NOTIFY CALL f", ["SELECT a FROM s WHERE b"]),
        (
            "WATCH w AS SELECT a FROM s AFTER 1 MATCH WHEN (f(a))",
            ["SELECT a FROM s", "SELECT 1 WHERE f(a)"],
        ),
        (
            f"RULE r AS {PATTERN} WHERE last_v > 2",
            [
                "SELECT * FROM s",
                "SELECT last_v FROM _matched  WHERE last_v > 2",
                "SELECT 1 ORDER BY ts",
                "SELECT nav_last ( a . v )",
                "SELECT a . v > 1",
                "SELECT f ( b . v )",
            ],
        ),
        (
            "RULE r AS count(DISTINCT f(a)) >= 3 WITHIN INTERVAL 1 MINUTE PER k FROM s WHERE b",
            ["SELECT * FROM s WHERE b", "SELECT f(a)"],
        ),
    ],
    ids=["rule", "watch", "pattern", "threshold"],
)
def test_every_clause_that_takes_sql_gives_its_piece(text: str, queries: list[str]) -> None:
    (said,) = read_statements(f"CREATE {text}", "x.sql")
    assert isinstance(said, RuleDefinition | WatchDefinition)
    found = list(embedded_queries(said))
    assert [query.text for query in found] == queries
    assert {name for query in found for name in query.relations} == {"s"}
