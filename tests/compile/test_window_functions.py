"""What each word for a window means, and how it is said to Spark's analyser."""

from __future__ import annotations

import msgspec
import pytest
from sqlglot import exp

from headrace.compile.plan import StepPlan
from headrace.compile.window_functions import (
    OrderedWindow,
    read_window,
    to_spark_windows,
    window_edge,
    window_function,
)
from headrace.compile.windows import (
    CountWindow,
    LandmarkWindow,
    SessionWindow,
    SlidingWindow,
    WindowPlan,
)
from headrace.core.origin import Origin
from headrace.core.time import HOUR, MINUTE, from_iso
from headrace.define.dialect import parse_query

AT = Origin("shop.sql", 3)
LANDMARK = from_iso("2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        ("window(ts, '1 hour')", SlidingWindow(HOUR, HOUR)),
        ("WINDOW(ts, '1 hour', '5 minutes')", SlidingWindow(HOUR, 5 * MINUTE)),
        (
            "window(ts, '1 hour', '5 minutes', '-1 minute')",
            SlidingWindow(HOUR, 5 * MINUTE, 4 * MINUTE),
        ),
        (
            "session_window(ts, '1 minute')",
            SessionWindow(ends=f"unix_micros(ts) + {MINUTE}"),
        ),
        (
            "session_window(ts, gap)",
            SessionWindow(ends="unix_micros(ts + cast(gap AS INTERVAL))"),
        ),
        (
            "landmark_window(ts, '2026-01-01 00:00:00')",
            LandmarkWindow(offset=LANDMARK),
        ),
    ],
)
def test_a_call_means_its_windows(call: str, meant: WindowPlan) -> None:
    assert read_window(parse_query(f"SELECT {call}", AT).expressions[0], AT) == meant


@pytest.mark.parametrize(
    ("window", "stored"),
    [
        (SlidingWindow(9, 3, 1), b'{"kind":"sliding","size":9,"slide":3,"offset":1,"ends":""}'),
        (CountWindow(9, 3), b'{"kind":"count","size":9,"slide":3,"offset":0,"ends":""}'),
        (LandmarkWindow(offset=5), b'{"kind":"landmark","size":0,"slide":0,"offset":5,"ends":""}'),
        (SessionWindow(ends="x"), b'{"kind":"session","size":0,"slide":0,"offset":0,"ends":"x"}'),
    ],
)
def test_a_plan_stores_a_window_with_its_kind(window: WindowPlan, stored: bytes) -> None:
    assert msgspec.json.encode(window) == stored  # another text would rebuild views: `recompute`
    assert msgspec.json.decode(stored, type=WindowPlan) == window


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
        (
            "SELECT count_window(10), count_window(10) + 1 AS w FROM c GROUP BY count_window(10)",
            "SELECT CAST(0 AS BIGINT) AS count_window, CAST(0 AS BIGINT) + 1 AS w FROM c "
            "GROUP BY CAST(0 AS BIGINT)",
        ),
    ],
)
def test_spark_hears_its_own_words_only(text: str, said: str) -> None:
    assert to_spark_windows(text, parse_query(text, AT)) == said


def ordered(text: str) -> OrderedWindow:
    found = read_window(parse_query(f"SELECT {text}", AT).expressions[0], AT)
    assert isinstance(found, OrderedWindow)
    return found


@pytest.mark.parametrize(
    ("text", "size", "slide", "pane"),
    [("count_window(10)", 10, 10, 10), ("COUNT_WINDOW(10, 4)", 10, 4, 2)],
)
def test_a_count_window_slides_over_numbers(text: str, size: int, slide: int, pane: int) -> None:
    found = ordered(text)
    assert found.window == CountWindow(size, slide)
    assert found.step == StepPlan("ordinal", (), (), "_number", "BIGINT")
    assert found.key_sql == f"(_number - pmod(_number, {pane}))"


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("punctuated_window(done)", (None, None)),
        ("punctuated_window(done, 5)", (5, None)),
        ("punctuated_window(done, NULL, '2 seconds')", (None, 2_000_000)),
    ],
)
def test_a_punctuated_window_has_its_own_number(
    text: str, limits: tuple[int | None, int | None]
) -> None:
    found = ordered(text)
    assert (found.window, found.condition, found.key_sql) == (None, "done", "_number")
    assert found.step.parameters == limits


def test_other_calls_are_no_windows() -> None:
    assert window_function(exp.func("hash")) is None
