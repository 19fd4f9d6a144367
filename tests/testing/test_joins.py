"""Joins of two streams: who meets, and who is kept alone from when on."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.core.errors import BadDefinition, Unsupported
from testing.streams import Event, answer

BOUND = "b.ts BETWEEN a.ts AND a.ts + INTERVAL 10 SECONDS"
LEFT: list[Event] = [(0, "p", 1), (1, "q", 2), (2, None, 3)]


def joined(kind: str, right: list[Event], bound: str = BOUND) -> list[tuple[Any, ...]]:
    items = "a.x AS l" if "SEMI" in kind else "a.x AS l, b.x AS r"
    query = f"SELECT {items} FROM a {kind} JOIN b ON a.k = b.k AND {bound}"
    return answer(query, a=LEFT, b=right)


@pytest.mark.parametrize(
    ("kind", "right", "expected"),
    [
        ("INNER", [(5, "p", 7), (6, "p", 8)], [(1, 7), (1, 8)]),
        ("INNER", [(10, "p", 7), (11, "p", 8), (-1, "p", 9)], [(1, 7)]),
        ("LEFT SEMI", [(5, "p", 7), (6, "p", 8)], [(1,)]),
        ("LEFT", [], []),
        ("LEFT", [(10, "z", 7)], []),
        ("LEFT", [(11, "z", 7)], [(1, None)]),
        ("LEFT", [(13, "z", 7)], [(1, None), (2, None), (3, None)]),
        ("LEFT", [(13, "z", 7), (3, "p", 8)], [(1, 8), (2, None), (3, None)]),
        ("RIGHT", [(1, "z", 7), (2, "z", 8)], [(None, 7)]),
        ("RIGHT", [(1, "q", 7), (1, None, 8)], [(2, 7), (None, 8)]),
        ("FULL", [(1, "z", 7), (11, "y", 8)], [(1, None), (None, 7)]),
    ],
)
def test_a_join_keeps_who_met_and_who_can_meet_no_more(
    kind: str, right: list[Event], expected: list[Any]
) -> None:
    assert joined(kind, right) == expected


@pytest.mark.parametrize(
    ("bound", "last"),
    [
        ("b.ts <= a.ts + INTERVAL 3 SECONDS", 3),
        ("b.ts - INTERVAL 3 SECONDS <= a.ts", 3),
        ("a.ts >= b.ts - INTERVAL 3 SECONDS AND b.ts > a.ts", 3),
        ("b.ts < a.ts + INTERVAL 3 SECONDS", 2),
        ("a.ts > b.ts - INTERVAL 3 SECONDS", 2),
        ("b.ts BETWEEN a.ts - INTERVAL 9 SECONDS AND a.ts", 0),
        ("a.ts BETWEEN b.ts - INTERVAL 4 SECONDS AND b.ts AND b.ts <= a.ts + INTERVAL 1 HOUR", 4),
    ],
)
def test_the_bound_says_when_the_last_partner_can_come(bound: str, last: int) -> None:
    assert joined("LEFT", [(last, "z", 7)], bound) == []
    assert joined("LEFT", [(last + 1, "z", 7)], bound) == [(1, None)]


def test_an_event_without_a_time_is_not_kept_alone() -> None:
    query = f"SELECT a.x FROM a LEFT JOIN b ON a.k = b.k AND {BOUND}"
    assert answer(query, a=[(None, "p", 1)], b=[(99, "z", 2)]) == []


def test_a_derived_stream_keeps_its_clock_with_its_time_column() -> None:
    side = "(SELECT k, x + 1 AS y, ts AS moment FROM b WHERE x > 0)"
    on = "a.k = d.k AND d.moment BETWEEN a.ts AND a.ts + INTERVAL 10 SECONDS"
    query = f"SELECT a.x, d.y FROM a LEFT JOIN {side} d ON {on}"
    assert answer(query, a=LEFT, b=[(5, "p", 7), (12, "z", 1)]) == [(1, 8), (2, None)]


def test_an_outer_join_of_streams_needs_a_bound() -> None:
    with pytest.raises(BadDefinition, match="streams requires a time bound"):
        joined("LEFT", [(1, "p", 7)], "b.ts >= a.ts")


def test_without_watermarks_only_inner_and_left_are_known() -> None:
    query = "SELECT a.x FROM a {} JOIN b ON a.k = b.k"
    for kind in ("RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI"):
        with pytest.raises(Unsupported, match="does not support"):
            answer(query.format(kind), None, a=LEFT, b=LEFT)
