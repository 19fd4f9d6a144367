"""What a windowed view keeps beside its own partials."""

from __future__ import annotations

import pytest

from headrace.compile.lateness import LatenessParts, lateness_of
from headrace.compile.split import split
from headrace.core.origin import Origin
from headrace.define.definitions import StreamDefinition
from headrace.define.dialect import parse_query
from headrace.define.statements import read_statements

AT = Origin("shop.sql", 1)
WATERMARK = ", WATERMARK ts DELAY OF INTERVAL 1 MINUTE"
WINDOW = "SELECT window(ts, '1 hour') AS w, count(*) AS n FROM s GROUP BY window(ts, '1 hour')"


def lateness(query: str, watermark: str = WATERMARK) -> LatenessParts:
    (stream,) = read_statements(f"CREATE STREAM s (ts TIMESTAMP{watermark})", "shop.sql")
    assert isinstance(stream, StreamDefinition)
    return lateness_of(split(parse_query(query, AT), {"ts"}, AT, str.__eq__), stream, "s")


def test_a_window_counts_events_late_ones_and_how_late_they_were() -> None:
    found = lateness(WINDOW)
    assert found.items == ("nullif(s._lateness, 0) AS late_us",)
    assert {p.columns[0]: (p.merge, *p.lifts) for p in found.partials} == {
        "_events": ("sum", "count(*)"),
        "_late": ("sum", "count(late_us)"),
        "_late_sum": ("sum", "sum(cast(late_us as double))"),
        "_late_max": ("max", "max(late_us)"),
        "_absorbed": ("sum", "cast(NULL as bigint)"),
        "_absorbed_by": ("max", "cast(NULL as bigint)"),
    }


@pytest.mark.parametrize(
    ("query", "watermark"),
    [("SELECT ts, count(*) AS n FROM s GROUP BY ts", WATERMARK), (WINDOW, "")],
    ids=["no window", "no watermark"],
)
def test_without_a_window_or_a_watermark_nothing_is_kept(query: str, watermark: str) -> None:
    assert lateness(query, watermark) == LatenessParts()
