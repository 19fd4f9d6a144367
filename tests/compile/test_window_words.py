"""What each word for a window means, and how it is said to Spark's analyser."""

from __future__ import annotations

import pytest

from headrace.compile.window_words import for_spark, read_window, window_edge
from headrace.compile.windows import WindowPlan
from headrace.core.origin import Origin
from headrace.core.time import HOUR, MINUTE, from_iso
from headrace.define.dialect import parse_query

AT = Origin("shop.sql", 3)
LANDMARK = from_iso("2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        ("window(ts, '1 hour')", WindowPlan("sliding", HOUR, HOUR)),
        ("WINDOW(ts, '1 hour', '5 minutes')", WindowPlan("sliding", HOUR, 5 * MINUTE)),
        (
            "window(ts, '1 hour', '5 minutes', '-1 minute')",
            WindowPlan("sliding", HOUR, 5 * MINUTE, 4 * MINUTE),
        ),
        (
            "session_window(ts, '1 minute')",
            WindowPlan("session", ends=f"unix_micros(ts) + {MINUTE}"),
        ),
        (
            "session_window(ts, gap)",
            WindowPlan("session", ends="unix_micros(ts + cast(gap AS INTERVAL))"),
        ),
        (
            "landmark_window(ts, '2026-01-01 00:00:00')",
            WindowPlan("landmark", offset=LANDMARK),
        ),
    ],
)
def test_a_call_means_its_windows(call: str, meant: WindowPlan) -> None:
    assert read_window(parse_query(f"SELECT {call}", AT).expressions[0], AT) == meant


@pytest.mark.parametrize(
    ("expression", "edge"),
    [
        ("window.start", "start"),
        ("session_window.end", "end"),
        ("landmark_window(ts, '2026-01-01').start", "start"),
        ("clicks.start", None),
        ("window.middle", None),
    ],
)
def test_an_edge_is_told_from_other_columns(expression: str, edge: str | None) -> None:
    assert window_edge(parse_query(f"SELECT {expression}", AT).expressions[0]) == edge


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "SELECT  window(ts, '1 hour') FROM c -- as it is",
            "SELECT  window(ts, '1 hour') FROM c -- as it is",
        ),
        (
            "SELECT landmark_window(ts, '2026-01-01'), landmark_window.start AS s, count(*) AS n "
            "FROM c GROUP BY landmark_window(ts, '2026-01-01')",
            "SELECT window(ts, '1 day') AS landmark_window, window.start AS s, count(*) AS n "
            "FROM c GROUP BY window(ts, '1 day')",
        ),
    ],
)
def test_spark_hears_its_own_words_only(text: str, said: str) -> None:
    assert for_spark(text, parse_query(text, AT)) == said
