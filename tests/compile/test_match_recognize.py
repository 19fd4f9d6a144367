"""What of a pattern Spark computes, what the matcher does, and where a match may begin."""

from __future__ import annotations

from headrace.compile.plan import MatchPlan
from headrace.core.pattern import (
    FunctionCall,
    Literal,
    MatchAggregate,
    Pattern,
    RowNavigation,
    Threshold,
    Value,
)

from .conftest import Compile

CLICKS = """
CREATE STREAM clicks (user STRING, url STRING, ms BIGINT, ts TIMESTAMP,
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE);
"""


def plan_of(compiled: Compile, query: str) -> tuple[str, MatchPlan]:
    """The SQL of the events, and the plan of the search."""
    plan = compiled(f"CREATE STREAM m AS {query};", CLICKS)
    carry = plan.derived[0].carry
    assert carry is not None
    assert carry.match is not None
    return carry.sql, carry.match


def matched(compiled: Compile, clause: str) -> tuple[str, MatchPlan, Pattern]:
    sql, match = plan_of(compiled, f"SELECT * FROM clicks MATCH_RECOGNIZE ({clause})")
    assert isinstance(match.pattern, Pattern)
    return sql, match, match.pattern


def test_a_condition_of_one_row_is_a_column_of_spark(compiled: Compile) -> None:
    sql, match, pattern = matched(
        compiled, "ORDER BY ts PATTERN (a b) DEFINE a AS upper(url) = '/X', b AS b.ms > 3"
    )
    assert pattern.conditions == (
        ("A", Value("c0", RowNavigation())),
        ("B", Value("c1", RowNavigation())),
    )
    assert "coalesce(upper(clicks.url) = '/X', FALSE) AS c0" in sql
    assert match.starts == "c0"


def test_what_compares_rows_is_the_matchers(compiled: Compile) -> None:
    _, match, pattern = matched(
        compiled, "ORDER BY ts PATTERN (a b) DEFINE b AS ms * 2 > last(a.ms, 1) + 3"
    )
    [(name, condition)] = pattern.conditions
    last = Value("c1", RowNavigation("A", offset=1))
    expected = FunctionCall(
        ">", (Value("c0", RowNavigation()), FunctionCall("+", (last, Literal(3))))
    )
    assert (name, condition) == ("B", expected)
    assert match.starts is None  # any row may be an a


def test_a_match_may_begin_anywhere_if_a_row_before_it_is_asked_for(compiled: Compile) -> None:
    clause = "ORDER BY ts MEASURES prev(a.ms) AS before PATTERN (a) DEFINE a AS ms > 3"
    assert matched(compiled, clause)[1].starts is None


def test_operations_of_measures_are_sparks_and_their_leaves_the_matchers(
    compiled: Compile,
) -> None:
    plan = compiled(
        "CREATE STREAM m AS SELECT * FROM clicks MATCH_RECOGNIZE (PARTITION BY user ORDER BY ts "
        "MEASURES coalesce(sum(a.ms), 0) + 1 AS n, last(ts) AS ended PATTERN (a));",
        CLICKS,
    )
    carry = plan.derived[0].carry
    assert carry is not None
    assert carry.match is not None
    pattern = carry.match.pattern
    assert isinstance(pattern, Pattern)
    assert [e for _, e in pattern.measures] == [
        MatchAggregate("sum", "c1", "A"),
        Value("c2", RowNavigation()),
    ]
    assert carry.match.measured == (("m0", "BIGINT"), ("m1", "BIGINT"))
    assert "coalesce(m0, 0) + 1 AS `n`" in plan.derived[0].sql
    assert "timestamp_micros(m1) AS `ended`" in plan.derived[0].sql


def test_all_rows_pass_key_and_time_first_and_one_row_the_key_alone(compiled: Compile) -> None:
    clause = "PARTITION BY user ORDER BY ts {} PATTERN (a)"
    assert len(matched(compiled, clause.format(""))[1].passed) == 1
    assert len(matched(compiled, clause.format("ALL ROWS PER MATCH"))[1].passed) == 4


def test_a_threshold_knows_what_it_counts(compiled: Compile) -> None:
    said = "count(DISTINCT lower(url)) > 2 WITHIN INTERVAL 1 MINUTE PER user FROM clicks"
    sql, match = plan_of(compiled, said)
    assert match.pattern == Threshold(("c0", "counted"), 3, 60_000_000, "counted")
    assert "lower(url) AS counted" in sql
