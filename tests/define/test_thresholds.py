"""`count(…) >= n WITHIN …` is read, and each mistake has its sentence."""

from __future__ import annotations

import pytest

from headrace.core.errors import BadDefinition
from headrace.define.definitions import QueryDefinition
from headrace.define.statements import read_statements


def read(text: str) -> QueryDefinition:
    [found] = read_statements(f"CREATE STREAM t AS\n{text}", "t.sql")
    assert isinstance(found, QueryDefinition)
    return found


def test_a_threshold_is_read_with_what_it_counts_and_whose() -> None:
    found = read("count(*) >= 20 WITHIN INTERVAL 2 MINUTES PER ip, port FROM scans WHERE bad")
    assert found.query == "SELECT * FROM scans WHERE bad"
    assert found.threshold is not None
    assert (found.threshold.keys, found.threshold.least) == (("ip", "port"), 20)
    assert (found.threshold.within_us, found.threshold.counted) == (120_000_000, None)


def test_more_than_is_one_more() -> None:
    found = read("count(DISTINCT lower(name)) > 5 WITHIN INTERVAL '3 minutes' FROM scans")
    assert found.threshold is not None
    assert found.threshold.least == 6
    assert found.threshold.counted is not None
    assert found.threshold.counted.sql == "lower(name)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("count(name) >= 2 WITHIN INTERVAL 1 MINUTE FROM s", "expected DISTINCT, got 'name'"),
        ("count(*) = 2 WITHIN INTERVAL 1 MINUTE FROM s", "expected >=, got '='"),
        (
            "count(*) >= 0 WITHIN INTERVAL 1 MINUTE FROM s",
            "a threshold must be a whole number from 1",
        ),
        (
            "count(*) >= x WITHIN INTERVAL 1 MINUTE FROM s",
            "a threshold must be a whole number from 1",
        ),
        (
            "count(*) >= 2 WITHIN INTERVAL 0 SECONDS FROM s",
            "the interval must be greater than zero",
        ),
        ("count(*) >= 2 WITHIN INTERVAL 1 MINUTE PER a", "expected FROM"),
        ("count(DISTINCT ) >= 2 WITHIN INTERVAL 1 MINUTE FROM s", "DISTINCT requires a column"),
    ],
)
def test_a_mistake_is_told_where_it_is(text: str, message: str) -> None:
    with pytest.raises(BadDefinition) as refused:
        read(text)
    assert refused.value.message.startswith(message)
    assert str(refused.value.origin).startswith("t.sql:2")
