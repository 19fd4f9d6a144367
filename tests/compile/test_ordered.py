"""The calls of windows in the order of events, and the step behind each."""

from __future__ import annotations

import pytest
from sqlglot import exp

from headrace.compile.ordered import OrderedWindow, ordered_name, read_ordered
from headrace.compile.plan import StepPlan
from headrace.compile.windows import WindowPlan
from headrace.core.origin import Origin
from headrace.define.dialect import parse_query

AT = Origin("v.sql", 1)


def window(text: str) -> OrderedWindow:
    call = parse_query(f"SELECT {text}", AT).expressions[0]
    assert ordered_name(call)
    return read_ordered(call, AT)


@pytest.mark.parametrize(
    ("text", "size", "slide", "pane"),
    [("count_window(10)", 10, 10, 10), ("COUNT_WINDOW(10, 4)", 10, 4, 2)],
)
def test_a_count_window_slides_over_numbers(text: str, size: int, slide: int, pane: int) -> None:
    found = window(text)
    assert found.window == WindowPlan("count", size, slide)
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
    found = window(text)
    assert (found.window, found.condition, found.key_sql) == (None, "done", "_number")
    assert found.step.parameters == limits


def test_other_calls_are_no_windows() -> None:
    assert ordered_name(exp.func("window")) is None
