"""Running values: what each function says of the key so far."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.core.errors import BadDefinition, Unsupported
from testing.streams import Event, answer

SAID: list[Event] = [(0, "a", None), (10, "a", 4), (12, "a", None), (14, "a", 10), (14, "a", 7)]
OVER = "OVER (PARTITION BY k ORDER BY ts)"


def running(call: str, said: list[Event] = SAID, over: str = OVER) -> list[Any]:
    return [y for (y,) in answer(f"SELECT {call} {over} AS y FROM s", s=said)]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("count(*)", [1, 2, 3, 4, 5]),
        ("count(x)", [0, 1, 1, 2, 3]),
        ("sum(x)", [None, 4, 4, 14, 21]),
        ("avg(x)", [None, 4.0, 4.0, 7.0, 7.0]),
        ("min(x)", [None, 4, 4, 4, 4]),
        ("max(x)", [None, 4, 4, 10, 10]),
        ("first_value(x)", [None, None, None, None, None]),
        ("last_value(x)", [None, 4, None, 10, 7]),
        ("lag(x)", [None, None, 4, None, 10]),
        ("row_number()", [1, 2, 3, 4, 5]),
        ("ewma(x, 0.5)", [None, 4.0, 4.0, 7.0, 7.0]),
        ("delta(x)", [None, None, None, 6, -3]),
        ("rate(x)", [None, None, None, 1.5, None]),
        ("last_known(x)", [None, 4, 4, 10, 7]),
    ],
)
def test_a_running_value_is_of_all_events_so_far(call: str, expected: list[Any]) -> None:
    assert running(call) == expected


def test_the_order_is_by_time_and_the_rows_stay_where_they_were() -> None:
    assert running("sum(x)", [(2, "a", 1), (1, "a", 2), (3, "a", 4)]) == [3, 2, 7]


def test_an_event_without_a_time_has_no_row() -> None:
    assert running("count(*)", [(1, "a", 1), (None, "a", 1), (2, "a", 1)]) == [1, 2]


def test_each_key_runs_by_itself_and_without_keys_all_run_together() -> None:
    said: list[Event] = [(1, "a", 1), (2, "b", 2), (3, "a", 4), (4, None, 8)]
    assert running("sum(x)", said) == [1, 2, 5, 8]
    assert running("sum(x)", said, over="OVER (ORDER BY ts)") == [1, 3, 7, 15]


def test_a_running_value_may_be_part_of_an_expression_beside_others() -> None:
    query = f"SELECT x - lag(x) {OVER} AS d, count(*) {OVER} * 10 AS n FROM s WHERE x > 0"
    assert answer(query, s=SAID) == [(None, 10), (6, 20), (-3, 30)]


@pytest.mark.parametrize(
    ("call", "over", "sentence"),
    [
        (
            "sum(x)",
            "OVER (ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
            "must not have a frame",
        ),
        ("sum(x)", "OVER (PARTITION BY k)", "requires ORDER BY the event time"),
        ("sum(x)", "OVER (ORDER BY ts DESC)", "requires ORDER BY the event time"),
    ],
)
def test_the_order_is_said_and_a_frame_is_not(call: str, over: str, sentence: str) -> None:
    with pytest.raises(BadDefinition, match=sentence):
        running(call, over=over)


@pytest.mark.parametrize("call", ["rank()", "lag(x, 2)", "sum(x) FILTER (WHERE x > 1)"])
def test_another_function_is_not_known(call: str) -> None:
    with pytest.raises(Unsupported, match="the reference"):
        running(call)
