"""The kernel takes no expression whose value may differ from the one that Spark computes."""

from __future__ import annotations

import pytest

from certified.edges import RELATION
from headrace.certified.lifts import LIFTS
from headrace.certified.select import compile_query
from headrace.core.errors import HeadraceError
from headrace.core.origin import Origin
from headrace.define.dialect import parse_read

OUTSIDE = "a computed date or time, which may lie outside the years 1 to 9999, is not available"


def compiled(query: str) -> str:
    return compile_query(
        parse_read(query, Origin("test", 1)), lambda name: RELATION, functions=LIFTS
    ).sql


@pytest.mark.parametrize(
    "expression",
    [
        "t1 + INTERVAL 1 DAY", "y1 - INTERVAL 1 MONTH", "y1 + 1", "date_add(y1, 1)",
        "date_sub(y1, i1)", "dateadd(y1, 1)", "add_months(y1, 1)", "timestamp_millis(b1)",
        "timestamp_micros(b1)", "timestamp_seconds(b1)", "date_from_unix_date(i1)",
        "make_date(i1, 1, 1)", "CAST(s1 AS DATE)", "CAST('12026-01-01' AS DATE)",
        "to_timestamp(s1)", "t1 > s1", "t1 <=> s1", "year(s1)", "unix_micros(t1 + INTERVAL 1 HOUR)",
        "CASE WHEN o1 THEN t1 ELSE t2 + INTERVAL 1 DAY END", "coalesce(y1, y2 + 1)",
        "CASE t1 WHEN s1 THEN 1 END", "if(t1 < s1, 1, 2)", "t1 BETWEEN t2 AND s1",
    ],
)  # fmt: skip
def test_times_that_may_leave_the_calendar_are_not_computed(expression: str) -> None:
    for query in (
        f"SELECT {expression} AS x FROM e",
        f"SELECT x FROM (SELECT {expression} AS x FROM e)",
        f"SELECT count(*) AS n FROM e WHERE ({expression}) IS NOT NULL",
    ):
        with pytest.raises(HeadraceError) as refused:
            compiled(query)
        assert refused.value.message.startswith(OUTSIDE)


@pytest.mark.parametrize(
    "expression",
    [
        "floor(log10(i1) * 10)", "log10(i1) > 2", "pow(d1, 0.3) >= 1", "CAST(exp(d1) AS INT)",
        "round(ln(d1), 2)", "sin(d1) % 1", "CASE WHEN cbrt(d1) = 2 THEN 1 END", "sign(cos(d1))",
        "ln(d1) IN (1, 2)", "acos(sin(d1))", "sqrt(sin(d1) * 2)", "CAST(tan(d1) AS DECIMAL(9,2))",
        "width_bucket(ln(d1), 0, 10, 5)", "nullif(atan(d1), 1)", "if(degrees(d1) < 1, 1, 2)",
        "max_by(i1, struct(ln(d1)))",
    ],
)  # fmt: skip
@pytest.mark.parametrize("within", ["{}", "coalesce({}, NULL)"])
def test_the_last_digits_of_a_function_decide_nothing(expression: str, within: str) -> None:
    for query in (
        f"SELECT {within.format(expression)} AS x FROM e",
        f"SELECT count(*) FILTER (WHERE {within.format(expression)} IS NULL) AS x FROM e",
    ):
        with pytest.raises(HeadraceError, match=r"what the last digits of '\w+' decide is not"):
            compiled(query)


def test_they_decide_nothing_in_a_query_around_it_either() -> None:
    inner = "SELECT log10(i1) AS l FROM e"
    with pytest.raises(HeadraceError, match=r"the last digits of 'log10' decide"):
        compiled(f"SELECT floor(l) AS f, count(*) AS n FROM ({inner}) GROUP BY floor(l)")
    assert "log10" in compiled(f"SELECT sum(l) AS s, count(l) AS n FROM ({inner})")


@pytest.mark.parametrize(
    "expression",
    [
        "t1 > '2026-01-01'", "t1 < TIMESTAMP '2026-01-01 10:00:00'", "y1 = DATE '2026-01-01'",
        "unix_micros(t1)", "CAST(t1 AS DATE)", "date_trunc('day', t1)", "floor(d1 / 7)",
        "round(d1, 2)", "d1 > 0.5", "sum(ln(d1))", "min(pow(d1, 2) * 2 - 1)", "count(exp(d1))",
        "sum(CASE WHEN o1 THEN ln(d1) ELSE 0 END)", "avg(coalesce(sin(d1), 0))",
    ],
)  # fmt: skip
def test_what_cannot_differ_is_computed(expression: str) -> None:
    assert compiled(f"SELECT {expression} AS x FROM e")
