"""The value of every aggregate over a few rows, as a table; DuckDB is asked where it agrees."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import pytest

from headrace.testing.reference import Reference

ROWS = [
    {"a": 4, "b": 1.5, "c": "x", "ok": True},
    {"a": None, "b": 2.5, "c": "y", "ok": None},
    {"a": 7, "b": None, "c": None, "ok": False},
    {"a": 4, "b": 0.25, "c": "x", "ok": True},
]
TABLE = [
    ("count(*)", 4),
    ("count(1)", 4),
    ("count(a)", 3),
    ("count(NULL)", 0),
    ("count(DISTINCT a)", 2),
    ("count(DISTINCT c)", 2),
    ("sum(a)", 15),
    ("sum(b)", 4.25),
    ("sum(DISTINCT a)", 11),
    ("sum(a + b)", 9.75),
    ("min(a)", 4),
    ("max(c)", "y"),
    ("min(b)", 0.25),
    ("avg(a)", 5.0),
    ("avg(b)", 4.25 / 3),
    ("var_samp(a)", 3.0),
    ("variance(a)", 3.0),
    ("var_pop(a)", 2.0),
    ("stddev(a)", math.sqrt(3)),
    ("stddev_samp(a)", math.sqrt(3)),
    ("stddev_pop(a)", math.sqrt(2)),
    ("bool_and(ok)", False),
    ("bool_or(ok)", True),
    ("bool_and(a > 3)", True),
    ("min_by(c, b)", "x"),
    ("max_by(c, b)", "y"),
    ("count(*) FILTER (WHERE ok)", 2),
    ("sum(a) FILTER (WHERE ok IS NULL)", None),
    ("count(DISTINCT c) FILTER (WHERE a = 4)", 1),
    ("sum(a) / count(*)", 3.75),
    ("covar_pop(a, b)", 0.0),
    ("covar_samp(a, a)", 3.0),
    ("round(avg(b), 2)", 1.42),
    ("CASE WHEN max(a) > 5 THEN 'big' ELSE 'small' END", "big"),
    ("coalesce(sum(a) FILTER (WHERE a > 100), 0)", 0),
]
OURS = [
    ("max_by(b, a)", None),  # DuckDB passes over a NULL value, Spark does not
    ("count(a, b)", 2),
    ("count(DISTINCT a, c)", 1),
    ("every(ok)", False),
    ("any(ok)", True),
    ("some(ok)", True),
    ("count_if(ok)", 2),
    ("approx_count_distinct(a)", 2),
    ("sum('3')", 12.0),
    ("first(a)", 4),
    ("last_value(c)", "x"),
    ("first(c) FILTER (WHERE a = 7)", None),
    ("first(c) FILTER (WHERE a = 7) IGNORE NULLS", None),
    ("first(b) IGNORE NULLS", 1.5),
    ("percentile_approx(a, 0.5)", 4),
    ("percentile_approx(a, 0.67)", 7),
    ("approx_percentile(b, 0)", 0.25),
    ("percentile_approx(b, 1)", 2.5),
    ("median(a)", 4.0),
    ("median(b)", 1.5),
    ("median(a) FILTER (WHERE b IS NULL OR b > 1)", 5.5),
    ("approx_top_k(c)", [{"item": "x", "count": 2}, {"item": "y", "count": 1}]),
    ("approx_top_k(a, 1)", [{"item": 4, "count": 2}]),
    ("count_min(c, 'x')", 2),
    ("count_min(a, 7)", 1),
    ("count_min(a, 8)", 0),
    ("collect_list(a)", [4, 7, 4]),
    ("collect_list(a, 2)", [4, 7]),
    ("collect_set(a)", [4, 7]),
    ("collect_set(b, 2)", [0.25, 1.5]),
    ("histogram(b, 0, 2, 4)", {"below": 0, "bins": [1, 0, 0, 1], "above": 1}),
    ("histogram(b, 0.5, 2.5, 1)", {"below": 1, "bins": [1], "above": 1}),
    ("bitmap_count_distinct(a)", 2),
    ("skewness(a)", 1 / math.sqrt(2)),
    ("kurtosis(a)", -1.5),
    ("corr(a, a)", 1.0),
    ("corr(a, b)", None),
]
NOTHING = [
    ("count(*)", 0),
    ("count(DISTINCT a)", 0),
    ("approx_count_distinct(a)", 0),
    *(
        (f"{name}(a)", None)
        for name in ("sum", "min", "max", "avg", "var_samp", "var_pop", "stddev")
    ),
    ("bool_and(ok)", None),
    ("max_by(a, b)", None),
    ("first(a)", None),
    ("median(a)", None),
    ("percentile_approx(a, 0.5)", None),
    ("collect_list(a)", []),
    ("approx_top_k(a)", []),
    ("histogram(a, 0, 2, 2)", {"below": 0, "bins": [0, 0], "above": 0}),
    ("bitmap_count_distinct(a)", 0),
    ("covar_pop(a, b)", None),
    ("corr(a, b)", None),
    ("skewness(a)", None),
    ("kurtosis(a)", None),
]


def value_of(aggregate: str, rows: list[dict[str, Any]]) -> Any:
    reference = Reference({"s": list(ROWS[0])}, {}, {"v": f"SELECT {aggregate} AS x FROM s"})
    placed = [{"_offset": place, "_partition": 0} | row for place, row in enumerate(rows)]
    answer = reference.answer("v", {"s": placed})
    assert len(answer) == 1
    return answer[0]["x"]


@pytest.mark.parametrize(("aggregate", "expected"), TABLE + OURS, ids=lambda x: str(x))
def test_an_aggregate_has_its_value(aggregate: str, expected: Any) -> None:
    assert value_of(aggregate, ROWS) == expected or math.isclose(
        value_of(aggregate, ROWS), expected
    )


@pytest.mark.parametrize(("aggregate", "expected"), NOTHING, ids=lambda x: str(x))
def test_an_aggregate_of_nothing(aggregate: str, expected: Any) -> None:
    assert value_of(aggregate, []) == expected


@pytest.mark.parametrize(("aggregate", "expected"), TABLE, ids=lambda x: str(x))
def test_duckdb_agrees_on_aggregates(aggregate: str, expected: Any) -> None:
    values = "(4, 1.5::DOUBLE, 'x', true), (NULL, 2.5, 'y', NULL),"
    values += "(7, NULL, NULL, false), (4, 0.25, 'x', true)"
    found = duckdb.execute(f"SELECT {aggregate} FROM (VALUES {values}) t(a, b, c, ok)").fetchone()[
        0
    ]
    assert found == expected or math.isclose(found, expected)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([2**63 - 2, 1], 2**63 - 1),
        ([2**63 - 1, 1], None),
        ([2**63 - 1, 1, -1], 2**63 - 1),
        ([-(2**63), -1], None),
        ([2**53, 1], 2**53 + 1),
    ],
)
def test_a_sum_of_whole_numbers_is_exact_or_null(values: list[int], expected: int | None) -> None:
    assert value_of("sum(a)", [{"a": value} for value in values]) == expected


def test_one_value_has_no_sample_variance() -> None:
    assert value_of("var_samp(a)", ROWS[:1]) is None
    assert value_of("stddev(a)", ROWS[:1]) is None
    assert value_of("var_pop(a)", ROWS[:1]) == 0.0


def test_a_variance_far_from_zero_is_exact() -> None:
    rows = [{"a": 10**15 + i} for i in (1, 2, 3)]
    assert value_of("var_samp(a)", rows) == 1.0


def at(value: str, offset: int, partition: int) -> dict[str, Any]:
    return {"c": value, "a": 1, "_offset": offset, "_partition": partition}


@pytest.mark.parametrize("function", ["max_by", "min_by"])
def test_among_equal_keys_the_latest_in_the_log_wins_in_any_order(function: str) -> None:
    rows = [at("first", 1, 0), at("later partition", 2, 1), at("latest", 2, 2), at("same", 0, 9)]
    assert value_of(f"{function}(c, a)", rows) == "latest"
    assert value_of(f"{function}(c, a)", rows[::-1]) == "latest"
