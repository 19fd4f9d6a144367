"""The reference of panes, by hand; and beside it the engine, over answers that chance has made.

The two share no code: the engine keeps an account, the reference looks at the whole past.
"""

from __future__ import annotations

from typing import Any

import pytest
from chance import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.subscription import Shape
from headrace.core.time import SECOND, iso
from headrace.define.subscribing import read_subscription
from headrace.serving.account import Account, Seen
from headrace.serving.panes import look
from headrace.testing.declared import declared
from headrace.testing.panes import Subscriber, streams_behind, subscriber_of

SHAPE = Shape("v", ("k", "w", "n"), ("k", "w"), "w", "n", ("s",))
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


def row(key: str, window: int, n: int) -> dict[str, Any]:
    edges = {"start": iso(window * 10 * SECOND), "end": iso((window + 1) * 10 * SECOND)}
    return {"k": key, "w": edges, "n": n}


@pytest.mark.parametrize("text", TEXTS)
@settings(max_examples=examples(50))
@given(moments=MOMENTS)
def test_engine_and_reference_say_the_same(text: str, moments: list[Any]) -> None:
    asked, account = read_subscription(f"SUBSCRIBE TO v {text}"), Account()
    reference = Subscriber(f"SUBSCRIBE TO v {text}", ("k", "w"), "w", "n")
    now = 0
    for answer, watermark, passed in moments:
        now += passed * SECOND
        rows = [row(key, window, n) for (key, window), n in answer.items()]
        mark = None if watermark is None else watermark * SECOND
        found = look(asked, SHAPE, account, Seen(rows, mark, now))
        account.after(found)
        heard = [
            {"op": p.op, "pane": p.pane, "timing": p.timing, "last": p.last, **p.row}
            for p in found.panes
        ]
        assert heard == reference.hears(rows, mark, now)


def test_reference_tells_a_window_when_it_is_over() -> None:
    one = Subscriber("SUBSCRIBE TO v EMIT ON TIME", ("k", "w"), "w", "n")
    assert one.hears([row("a", 0, 1)], 9 * SECOND, 0) == []
    (pane,) = one.hears([row("a", 0, 2)], 10 * SECOND, 0)
    assert pane == {"op": "insert", "pane": 0, "timing": "on_time", "last": True, **row("a", 0, 2)}
    assert one.hears([row("a", 0, 3)], 10 * SECOND, 0) == []


def test_columns_are_read_off_the_definition() -> None:
    found = declared(
        "CREATE STREAM s (k STRING, ts TIMESTAMP);"
        "CREATE VIEW v AS SELECT k, window(ts, '10 seconds') AS w, count(*) AS n, max(k) AS m "
        "FROM s GROUP BY k, window(ts, '10 seconds'); CREATE VIEW over AS SELECT k, n FROM v;"
    )
    one = subscriber_of(found, ("k", "w", "n", "m"), "SUBSCRIBE TO v WHERE k = 'a'")
    assert (one.keys, one.window, one.count) == (("k", "w"), "w", "n")
    assert one.where == {"k": "a"}
    other = subscriber_of(found, ("k", "n"), "SUBSCRIBE TO over")
    assert other.keys == ("k", "n")
    assert streams_behind(found, "over") == ["s"]
