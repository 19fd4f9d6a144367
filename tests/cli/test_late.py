"""Lateness is shown window by window, with where the late events are."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from typer.testing import Result

from headrace.api.resources.rows import LateRequest
from headrace.serving.late import LateAnswer

from .conftest import LATENESS, Told, document


def test_each_window_has_a_line_with_its_late_events_and_who_absorbed_them(
    told: Told, call: Callable[..., Result]
) -> None:
    result = call(
        "late", "visitors", "--where", "url=/home", "--where", "user=a=b",
        "--since", "2026-11-15", "--until", "2026-11-16", "--limit", "9",
    )  # fmt: skip
    assert result.exit_code == 0
    keys = {"url": "/home", "user": "a=b"}
    assert told.asked == [LateRequest("visitors", keys, None, "2026-11-15", "2026-11-16", 9)]
    assert [line.rstrip() for line in result.stdout.splitlines()] == [
        "url    hour                      on time  late  late by (max)  late by (mean)  "
        "absorbed by",
        "/home  2026-11-15 19:00 – 20:00    1,200     3          1.58m           1.02m  "
        "generation 3, 1 not yet (speed)",
        "/a     2026-11-15 19:00 – 20:00        7     2          1.5ms          1.25ms  "
        "generation 2",
        "null   2026-11-15 19:00 – 20:00        0     1             1h              1h  "
        "1 not yet (speed)",
        "/b     2026-11-15 19:00 – 20:00        4     0",
        "4 windows; summed over them, 6 of 1,217 events late",
        "clicks: generation 3 · position 603,590 · watermark 2026-11-15 19:04:30 UTC · 0.4 s old",
    ]


def test_json_is_the_answer_as_it_is(told: Told, call: Callable[..., Result]) -> None:
    assert document(call("late", "visitors", "--json")) == msgspec.to_builtins(LATENESS)
    assert told.asked == [LateRequest("visitors")]


def test_a_view_without_windows_yet_and_one_that_was_cut_say_so(
    told: Told, call: Callable[..., Result]
) -> None:
    told.lateness = LateAnswer("visitors", [], LATENESS.as_of, truncated=True)
    lines = call("late", "visitors").stdout.splitlines()
    assert lines[:2] == ["no windows", "0 windows; summed over them, 0 of 0 events late"]
    assert lines[-1] == "there are more windows; give --since or --where"


def test_a_condition_without_a_value_is_refused(told: Told, call: Callable[..., Result]) -> None:
    result = call("late", "visitors", "--where", "url", "--json")
    assert result.exit_code == 1
    assert document(result)["message"] == "expected key=value, got 'url'"
