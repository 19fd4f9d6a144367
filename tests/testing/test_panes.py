"""The reference of panes, by hand; and beside it the engine, over answers that chance has made.

The two share no code: the engine keeps an state, the reference looks at the whole past.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from chance import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.subscription import Form, Mode, ViewShape
from headrace.core.time import SECOND, from_iso, iso
from headrace.define.view_subscription import read_subscription
from headrace.serving.emit_state import EmitState, ViewAnswer
from headrace.serving.panes import next_panes
from headrace.testing.declarations import read_declarations
from headrace.testing.panes import ReferenceSubscriber, streams_behind, subscriber_of

SHAPE = ViewShape("v", ("k", "w", "n"), ("k", "w"), "w", "n", ("s",))
SESSIONS = ViewShape("v", ("k", "w", "n"), ("k", "w"), "w", "n", ("s",), sessions=True)
GAP = 5
TEXTS = [
    "",
    "EMIT CHANGES RETRACTING",
    "EMIT CHANGES DISCARDING",
    "EMIT INSERTS",
    "EMIT DELETES",
    "EMIT RELATION",
    "EMIT ON TIME",
    "EMIT EARLY EVERY 2 EVENTS",
    "EMIT EARLY EVERY INTERVAL 3 SECONDS, ON TIME RETRACTING",
    "EMIT ON TIME, LATE EVERY 2 EVENTS DISCARDING",
    "EMIT EARLY EVERY 1 EVENT, LATE EVERY INTERVAL 2 SECONDS",
    "EMIT EARLY EVERY INTERVAL 2 SECONDS, ALLOWED LATENESS INTERVAL 5 SECONDS",
    "EMIT ON TIME, LATE EVERY 1 EVENT, ALLOWED LATENESS INTERVAL 10 SECONDS RETRACTING",
    "EMIT ALLOWED LATENESS INTERVAL 3 SECONDS DISCARDING",
]
MOMENTS = st.lists(
    st.tuples(
        st.dictionaries(st.tuples(st.sampled_from("ab"), st.integers(0, 2)), st.integers(1, 6)),
        st.none() | st.integers(0, 45),
        st.integers(0, 3),
    ),
    max_size=8,
)
EVENT = st.tuples(st.sampled_from("ab"), st.integers(0, 40))
# What arrives before each look, the watermark then, the time since the last one, and the rows
# that HAVING hides: those with this remainder of their count.
GROWTH = st.lists(
    st.tuples(
        st.lists(EVENT, max_size=4),
        st.none() | st.integers(0, 60),
        st.integers(0, 3),
        st.sampled_from((None, None, 0, 1)),
    ),
    max_size=10,
)


def row(key: str, window: int, n: int) -> dict[str, Any]:
    edges = {"start": iso(window * 10 * SECOND), "end": iso((window + 1) * 10 * SECOND)}
    return {"k": key, "w": edges, "n": n}


def sessions(events: list[tuple[str, int]]) -> list[dict[str, Any]]:
    """The sessions of events: key and second of each."""
    found: list[tuple[str, list[int]]] = []
    for key, second in sorted(events):
        if found and found[-1][0] == key and second <= found[-1][1][-1] + GAP:
            found[-1][1].append(second)
        else:
            found.append((key, [second]))
    return [
        {
            "k": key,
            "w": {"start": iso(times[0] * SECOND), "end": iso((times[-1] + GAP) * SECOND)},
            "n": len(times),
        }
        for key, times in found
    ]


@pytest.mark.parametrize("text", TEXTS)
@settings(max_examples=examples(50))
@given(moments=MOMENTS)
def test_engine_and_reference_say_the_same(text: str, moments: list[Any]) -> None:
    now, looks = 0, []
    for answer, watermark, passed in moments:
        now += passed * SECOND
        rows = [row(key, window, n) for (key, window), n in answer.items()]
        looks.append((rows, None if watermark is None else watermark * SECOND, now))
    compare(text, SHAPE, looks)


@pytest.mark.parametrize("text", TEXTS)
@settings(max_examples=examples(50))
@given(growth=GROWTH)
def test_engine_and_reference_say_the_same_of_sessions(text: str, growth: list[Any]) -> None:
    compare(text, SESSIONS, grown(growth))


@pytest.mark.parametrize("text", TEXTS)
@settings(max_examples=examples(50))
@given(growth=GROWTH)
def test_sessions_that_a_subscriber_has_never_overlap(text: str, growth: list[Any]) -> None:
    """So no event was sent twice; DISCARDING, the sessions that it has are those it can sum up."""
    subscription, state = read_subscription(f"SUBSCRIBE TO v {text}"), EmitState()
    if subscription.form is not Form.PANES:
        return
    has: dict[str, int] = {}
    for rows, mark, now in grown(growth):
        found = next_panes(subscription, SESSIONS, state, ViewAnswer(rows, mark, now))
        state.apply(found)
        for pane in found.panes:
            key = json.dumps([pane.row["k"], pane.row["w"]])
            added = has.get(key, 0) if subscription.mode is Mode.DISCARDING else 0
            has[key] = added + pane.row["n"] if pane.op == "insert" else 0
        held = sorted((k, from_iso(w["start"]), from_iso(w["end"])) for k, w in _held(has))
        assert all(one[0] != other[0] or one[2] < other[1] for one, other in pairwise(held)), (
            f"{found.panes} leave {held}"
        )


def _held(has: dict[str, int]) -> list[Any]:
    return [json.loads(key) for key, n in has.items() if n]


Looks = list[tuple[list[dict[str, Any]], int | None, int]]


def grown(growth: list[Any]) -> Looks:
    """The answer after each arrival."""
    now, looks, events = 0, [], list[tuple[str, int]]()
    for arrived, watermark, passed, hidden in growth:
        now += passed * SECOND
        events += arrived
        rows = [r for r in sessions(events) if hidden is None or r["n"] % 2 != hidden]
        looks.append((rows, None if watermark is None else watermark * SECOND, now))
    return looks


def compare(text: str, shape: ViewShape, looks: Looks) -> None:
    subscription, state = read_subscription(f"SUBSCRIBE TO v {text}"), EmitState()
    reference = ReferenceSubscriber(f"SUBSCRIBE TO v {text}", ("k", "w"), "w", "n", shape.sessions)
    for rows, mark, now in looks:
        found = next_panes(subscription, shape, state, ViewAnswer(rows, mark, now))
        state.apply(found)
        heard = [
            {"op": p.op, "pane": p.pane, "timing": p.timing, "last": p.last, **p.row}
            for p in found.panes
        ]
        assert heard == reference.observe(rows, mark, now)


def test_reference_tells_a_window_when_it_is_over() -> None:
    one = ReferenceSubscriber("SUBSCRIBE TO v EMIT ON TIME", ("k", "w"), "w", "n")
    assert one.observe([row("a", 0, 1)], 9 * SECOND, 0) == []
    (pane,) = one.observe([row("a", 0, 2)], 10 * SECOND, 0)
    assert pane == {"op": "insert", "pane": 0, "timing": "on_time", "last": True, **row("a", 0, 2)}
    assert one.observe([row("a", 0, 3)], 10 * SECOND, 0) == []


def test_columns_are_read_off_the_definition() -> None:
    found = read_declarations(
        "CREATE STREAM s (k STRING, ts TIMESTAMP);"
        "CREATE VIEW v AS SELECT k, window(ts, '10 seconds') AS w, count(*) AS n, max(k) AS m "
        "FROM s GROUP BY k, window(ts, '10 seconds'); CREATE VIEW over AS SELECT k, n FROM v;"
    )
    one = subscriber_of(found, ("k", "w", "n", "m"), "SUBSCRIBE TO v WHERE k = 'a'")
    assert (one.keys, one.window, one.count) == (("k", "w"), "w", "n")
    assert one.where == {"k": "a"}
    assert not one.sessions
    other = subscriber_of(found, ("k", "n"), "SUBSCRIBE TO over")
    assert other.keys == ("k", "n")
    assert streams_behind(found, "over") == ["s"]


def test_sessions_are_read_off_the_definition() -> None:
    found = read_declarations(
        "CREATE STREAM s (k STRING, ts TIMESTAMP);"
        "CREATE VIEW v AS SELECT k, session_window(ts, '10 seconds') AS w, count(*) AS n "
        "FROM s GROUP BY k, session_window(ts, '10 seconds');"
    )
    assert subscriber_of(found, ("k", "w", "n"), "SUBSCRIBE TO v").sessions


def test_reference_deletes_a_session_when_the_longer_one_is_sent() -> None:
    one = ReferenceSubscriber("SUBSCRIBE TO v EMIT ON TIME", ("k", "w"), "w", "n", sessions=True)
    before, after = sessions([("a", 0)]), sessions([("a", 0), ("a", 5)])
    said = {"pane": 0, "timing": "on_time", "last": True}
    assert one.observe(before, 5 * SECOND, 0) == [{"op": "insert", **said, **before[0]}]
    assert one.observe(after, 9 * SECOND, 0) == []
    assert one.observe(after, 10 * SECOND, 0) == [
        {"op": "delete", **said, "pane": 1, "last": False, **before[0]},
        {"op": "insert", **said, "pane": 1, **after[0]},
    ]
