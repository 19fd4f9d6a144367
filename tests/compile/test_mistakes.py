"""All mistakes of a project's patterns are told at once, each at its place."""

from __future__ import annotations

import pytest
from serving.bench import STREAM, plan_of

from headrace.core.errors import HeadraceError

PATTERNS = """
CREATE STREAM rises AS SELECT * FROM clicks MATCH_RECOGNIZE (
  PARTITION BY user ORDER BY ts
  MEASURES stddev(a.ms) AS spread,
    LAST(q.ms) AS top,
    kurtosis(ms) AS peaks
  PATTERN (NOT c a b+)
  DEFINE a AS FINAL LAST(a.ms) > 3,
    b AS median(b.ms) > 2,
    x AS x.ms > 1);
CREATE STREAM falls AS SELECT user FROM clicks MATCH_RECOGNIZE (
  PARTITION BY user ORDER BY ms PATTERN (a b));
CREATE VIEW risen AS SELECT user, count(*) AS n FROM rises GROUP BY user;
"""


def test_all_mistakes_of_patterns_are_told_at_once() -> None:
    with pytest.raises(HeadraceError) as caught:
        plan_of(STREAM + PATTERNS)
    found = (caught.value, *caught.value.others)
    assert [(each.message, str(each.origin)) for each in found] == [
        ("the aggregate stddev is not supported in a pattern", "bench.sql:7"),
        ("'q' is not a pattern variable", "bench.sql:8"),
        ("the aggregate kurtosis is not supported in a pattern", "bench.sql:9"),
        ("FINAL is not allowed in DEFINE: the match is not complete yet", "bench.sql:11"),
        ("the aggregate median is not supported in a pattern", "bench.sql:12"),
        ("DEFINE has a condition for X, which is not a pattern variable", "bench.sql:13"),
        ("a pattern cannot begin with NOT", "bench.sql:5"),
        ("ORDER BY ms is not the event time", "bench.sql:15"),
    ]
    assert found[0].hint == "use one of count, sum, avg, min, max, collect_list, array_agg."
