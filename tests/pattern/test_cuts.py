"""A search may be cut anywhere: rounds through stored states give what one round gives."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest
from chance import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.pattern import (
    FunctionCall,
    Literal,
    MatchId,
    MatchNumber,
    Pattern,
    RowNavigation,
    RowsPerMatch,
    Selection,
    Skip,
    Value,
)
from headrace.pattern.matcher import Matcher
from tests.pattern.chance import pattern_by, rows_by
from tests.pattern.letters import lettered, pattern

FALLING = FunctionCall("<", (Value("x", RowNavigation()), Value("x", RowNavigation(shift=-1))))
NUMBERED = {"number": MatchNumber(), "id": MatchId()}
PATTERNS = [
    pattern("A B+ C", measures=NUMBERED),
    pattern("^ A+ | B", measures=NUMBERED),
    pattern("A B*", RowsPerMatch.UNMATCHED, Skip("to next row"), within=4, measures=NUMBERED),
    pattern("A B C", selection=Selection.ANY, within=5, measures=NUMBERED),
    pattern("A NOT C", within=4, measures=NUMBERED),
    pattern(
        "A B+", measures={"before": Value("x", RowNavigation(first=True, shift=-2))}, A=FALLING
    ),
    pattern("A B", measures={"next": Value("x", RowNavigation(shift=2))}),
    pattern("A B", B=FunctionCall("=", (Value("letter", RowNavigation(shift=1)), Literal("c")))),
]


@settings(max_examples=examples(100))
@given(letters=st.text("abc", max_size=14), cuts=st.lists(st.integers(1, 20)), data=st.data())
def test_rounds_give_what_one_round_gives(letters: str, cuts: list[int], data: Any) -> None:
    one = data.draw(st.sampled_from(PATTERNS))
    rows = lettered(letters, [ord(char) * 7 % 5 for char in letters])
    assert in_rounds(one, rows, sorted(cuts)) == in_rounds(one, rows, [])


@settings(max_examples=examples(200))
@given(seed=st.integers(), cuts=st.lists(st.integers(1, 30)))
def test_rounds_of_any_pattern_give_what_one_round_gives(seed: int, cuts: list[int]) -> None:
    chance = Random(seed)
    one, rows = pattern_by(chance), rows_by(chance)
    assert in_rounds(one, rows, sorted(cuts)) == in_rounds(one, rows, [])


@pytest.mark.parametrize("one", PATTERNS)
def test_every_row_may_come_in_a_round_of_its_own(one: Pattern) -> None:
    rows = lettered("aabbcabcaab", [3, 1, 2, 5, 4, 9, 2, 1, 0, 3, 3])
    assert in_rounds(one, rows, list(range(1, 12))) == in_rounds(one, rows, [])


def in_rounds(one: Pattern, rows: list[Any], marks: list[int]) -> list[Any]:
    """The results of all rounds, each with a state that was stored; the last one is closed."""
    matcher, state, results, taken = Matcher(one), None, [], 0
    for mark in [*marks, None]:
        search = matcher.resume(msgspec.msgpack.decode(msgspec.msgpack.encode(state)))
        ripe = [row for row in rows if mark is None or row[0] < mark]
        search.take(ripe[taken:])
        results += search.matches(mark, ended=mark is None)
        taken, state = len(ripe), search.state()
    return results
