"""What a watch finds, by hand."""

from __future__ import annotations

from typing import Any

from headrace.core.time import SECOND
from headrace.testing import ReferenceEngine, loads

STORY = """
name: n
definitions: |
  CREATE WATCH w AS SELECT user FROM clicks WHERE ms > 1 {ends}
watermark: 1 minute
steps: []
"""
Seen = tuple[list[str], str | None]


def watching(ends: str) -> ReferenceEngine:
    engine = ReferenceEngine()
    engine.start(loads(STORY.format(ends=ends)))
    return engine


def send(engine: ReferenceEngine, *clicks: tuple[str, int, int]) -> None:
    records = [
        b'{"user": "%s", "ts": "2026-01-01T00:00:%02dZ", "ms": %d}' % (user.encode(), at, ms)
        for user, at, ms in clicks
    ]
    engine.send("clicks", records)


def seen(engine: ReferenceEngine) -> Seen:
    rows: list[dict[str, Any]]
    rows, why = engine.watches()["w"]
    return [row["user"] for row in rows], why


def test_matches_are_taken_in_the_order_of_time_at_each_look() -> None:
    engine = watching("AFTER 3 MATCHES")
    send(engine, ("c", 3, 9), ("a", 1, 9), ("x", 2, 1))
    assert seen(engine) == (["a", "c"], None)
    send(engine, ("d", 4, 9), ("b", 2, 9))
    assert seen(engine) == (["a", "c", "b"], "it had 3 matches")
    assert seen(engine) == (["a", "c", "b"], "it had 3 matches")


def test_match_for_which_when_is_true_is_the_last() -> None:
    engine = watching("WHEN (user = 'b' OR (user = 'c')) SEVERITY 'low'")
    send(engine, ("a", 1, 9), ("b", 2, 9), ("c", 3, 9))
    assert seen(engine) == (["a", "b"], "its WHEN condition was met")


def test_arrival_decides_on_until() -> None:
    engine = watching("UNTIL '2026-01-02T00:00:05Z'")
    send(engine, ("a", 1, 9))
    engine.wait(4 * SECOND)
    send(engine, ("b", 2, 9))
    engine.wait(SECOND)
    send(engine, ("c", 3, 9))
    assert seen(engine) == (["a", "b"], "its UNTIL time was reached: 2026-01-02T00:00:05Z")
