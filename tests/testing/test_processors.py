"""Processors: states, timers and rows of a user's class."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headrace.core.errors import BadDefinition, UnknownColumn, UnknownName
from headrace.testing import loads
from headrace.testing.reference import Reference, StreamWatermark, Timestamp
from headrace.testing.reference.processors import ProcessorInvocation, call_of
from headrace.testing.reference_engine import processors_of
from testing.streams import COLUMNS, Event, at, events

TRACE = """
@processor("k STRING, what STRING, moment TIMESTAMP")
class Trace:
    def init(self):
        return {"k": None, "n": 0}

    def on_event(self, state, event, timers):
        state["k"], state["n"] = event.k, state["n"] + 1
        if event.x:
            timers.at(int(event.ts.timestamp()) * 1_000_000 + event.x * 1_000_000)
        elif event.x == 0:
            timers.clear()
        yield event.k, f"event {state['n']}", event.ts

    def on_timer(self, state, at, timers):
        yield state["k"], f"timer {state['n']}", at
"""


def answer(said: list[Event], text: str = TRACE, query: str | None = None) -> list[tuple[Any, ...]]:
    reference = Reference(
        {"s": COLUMNS},
        {},
        {"v": query or "SELECT * FROM trace(TABLE(s) PARTITION BY k)"},
        watermarks={"s": StreamWatermark("ts", 0)},
        processors=processors_of(text),
    )
    return [tuple(row.values()) for row in reference.answer("v", {"s": events(said)})]


def trace(*said: Event) -> list[str]:
    return [f"{k} {what}" for k, what, _ in answer(list(said))]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([(2, "a", None), (1, "a", None)], ["a event 1", "a event 2"]),
        ([(1, "a", 5), (5, "a", None)], ["a event 1", "a event 2"]),
        ([(1, "a", 5), (6, "a", None)], ["a event 1", "a timer 1", "a event 2"]),
        ([(1, "a", 5), (2, "a", 5), (6, "a", None)], ["a event 1", "a event 2", "a event 3"]),
        ([(1, "a", 5), (2, "a", 0), (9, "a", None)], ["a event 1", "a event 2", "a event 3"]),
        ([(1, "a", 5), (6, "b", None)], ["a event 1", "a timer 1", "b event 1"]),
        ([(1, "a", 5), (5, "b", None)], ["a event 1", "b event 1"]),
        ([(None, "a", 5), (1, None, None)], ["None event 1"]),
    ],
)
def test_events_come_in_order_and_a_timer_fires_between_them(
    said: list[Event], expected: list[str]
) -> None:
    assert trace(*said) == expected


def test_a_moment_is_a_moment_again_in_the_answer() -> None:
    assert answer([(1, "a", None)]) == [("a", "event 1", "1970-01-01T00:00:01Z")]
    assert at(1) == Timestamp(1_000_000)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("SELECT * FROM p(TABLE(s) PARTITION BY a)", ("a",)),
        ("select *\nfrom P ( table ( s )\n partition by (A, `b`) )", ("a", "b")),
        ("SELECT * FROM p(TABLE(s) PARTITION BY a, b)", ("a", "b")),
    ],
)
def test_a_call_is_read(text: str, keys: tuple[str, ...]) -> None:
    found = call_of(text)
    assert found is not None
    assert (found.name.lower(), found.stream, found.keys) == ("p", "s", keys)


def test_another_query_is_no_call() -> None:
    assert call_of("SELECT * FROM s") is None
    assert call_of("SELECT a FROM p(TABLE(s) PARTITION BY a)") is None
    assert call_of("SELECT * FROM p(TABLE(s) PARTITION BY a)") == ProcessorInvocation(
        "p", "s", ("a",)
    )


BAD = """
@processor("n BIGINT")
class Bad:
    def init(self):
        return {state}

    def on_event(self, state, event, timers):
        timers.at(0)
        yield {row}

    def on_timer(self, state, at, timers):
        timers.at(at)
        yield (1,)
"""


def bad(state: str = "None", row: str = "(1,)") -> list[tuple[Any, ...]]:
    text = BAD.format(state=state, row=row)
    return answer([(1, "a", 1)], text, "SELECT * FROM bad(TABLE(s) PARTITION BY k)")


def test_a_row_has_as_many_values_as_there_are_columns() -> None:
    said = r"a processor must return rows of 1 values, got \(1, 2\)"
    with pytest.raises(BadDefinition, match=said):
        bad(row="(1, 2)")


def test_a_timer_cannot_fire_for_ever() -> None:
    with pytest.raises(BadDefinition, match="must be later than the one that fired"):
        bad()


def test_a_state_is_kept_as_json() -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        bad(state="object()")


def test_a_name_that_nothing_has_is_said() -> None:
    with pytest.raises(UnknownName, match="there is no processor named 'other'"):
        answer([], query="SELECT * FROM other(TABLE(s) PARTITION BY k)")
    with pytest.raises(UnknownColumn, match="'s' has no column 'z' to partition by"):
        answer([], query="SELECT * FROM trace(TABLE(s) PARTITION BY z)")


def test_the_processors_of_a_transcript_are_a_functions_file() -> None:
    story = {"name": "n", "definitions": "CREATE VIEW v AS SELECT 1 AS a", "steps": []}
    assert loads(json.dumps(story)).functions_text == ""
    found = loads(json.dumps(story | {"processors": TRACE})).functions_text
    assert found == f"from headrace import processor\n\n\n{TRACE}"
