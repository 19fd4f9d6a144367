"""The text of an interval is read as Spark reads it, or refused."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest

from headrace.certified.select import compile_query
from headrace.core.errors import Unsupported
from headrace.core.origin import Origin
from headrace.define.dialect import parse_read
from headrace.serving.engine import run

NEW_YEAR = datetime(2026, 1, 1)
HINT = "only seconds may have a fraction: INTERVAL '1 day -2.5 seconds'."


def value(expression: str) -> Any:
    query = parse_read(f"SELECT {expression} AS x", Origin("test", 1))
    [row] = run(compile_query(query, lambda name: None).sql, {}).to_pylist()
    return row["x"]


@pytest.mark.parametrize(
    ("interval", "time"),
    [
        ("'1 day'", datetime(2026, 1, 2)),
        ("'1 day 1.5 seconds'", datetime(2026, 1, 2, 0, 0, 1, 500_000)),
        ("'- 1 day'", datetime(2025, 12, 31)),
        ("'-1 day 2 hours'", datetime(2025, 12, 31, 2)),
        ("'  +1  DAYS -.5 second '", datetime(2026, 1, 1, 23, 59, 59, 500_000)),
        ("'1.1234569 seconds'", datetime(2026, 1, 1, 0, 0, 1, 123_456)),
        ("1.5 SECONDS", datetime(2026, 1, 1, 0, 0, 1, 500_000)),
        ("1 DAY 2 HOURS", datetime(2026, 1, 2, 2)),
        ("'1' WEEK '-2' DAYS 3 MICROSECONDS", datetime(2026, 1, 6, 0, 0, 0, 3)),
        ("1 YEAR 1 MONTH", datetime(2027, 2, 1)),
    ],
)
def test_an_interval_is_read_whole(interval: str, time: datetime) -> None:
    assert value(f"TIMESTAMP '2026-01-01' + INTERVAL {interval}") == time
    assert value(f"INTERVAL {interval} + TIMESTAMP '2026-01-01'") == time
    if "MONTH" not in interval:
        assert value(f"TIMESTAMP '2026-01-01' - INTERVAL {interval}") == NEW_YEAR - (
            time - NEW_YEAR
        )


@pytest.mark.parametrize(
    ("interval", "sum"),
    [
        ("1 DAY", date(2026, 1, 2)),
        ("'1 week'", date(2026, 1, 8)),
        ("1 MONTH", date(2026, 2, 1)),
        ("24 HOURS", datetime(2026, 1, 2)),
        ("1 DAY 0 HOURS", datetime(2026, 1, 2)),
    ],
)
def test_a_date_becomes_a_time_by_a_unit_below_the_day(interval: str, sum: date) -> None:
    assert value(f"DATE '2026-01-01' + INTERVAL {interval}") == sum


@pytest.mark.parametrize(
    "interval",
    [
        "'1 day junk'", "'1 day 02:03:04'", "'1.5 days'", "''", "'1 fortnight'", "i1 DAYS",
        "'1 02:03:04' DAY TO SECOND", "1 QUARTER", "'1 1 day'", "'- day'",
    ],
)  # fmt: skip
def test_what_spark_does_not_read_is_refused(interval: str) -> None:
    with pytest.raises(Unsupported, match=r"the interval INTERVAL .* is not available") as refused:
        value(f"TIMESTAMP '2026-01-01' + INTERVAL {interval}")
    assert refused.value.hint == HINT


def test_months_and_days_are_not_added_together() -> None:
    with pytest.raises(Unsupported, match="an interval that combines months and days"):
        value("DATE '2026-01-01' + INTERVAL 1 MONTH 1 DAY")
