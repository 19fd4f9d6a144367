"""The search of a key has a bound, where the number of ways may be exponential in its rows.

What is set aside is decided by the rows of the key: in one round or in many, it is the same row,
and what was found before it is given out.
"""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest
from chance import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headrace.core.pattern import (
    Expression,
    FunctionCall,
    Literal,
    MatchAggregate,
    Pattern,
    Permute,
    RowNavigation,
    Selection,
    Value,
)
from headrace.pattern.ambiguity import count_ways
from headrace.pattern.check import parts
from headrace.pattern.matcher import Matcher
from tests.pattern.chance import pattern_by, rows_by
from tests.pattern.letters import lettered, pattern
from tests.pattern.oracle import Oracle


def total(name: str) -> Expression:
    return FunctionCall("coalesce", (MatchAggregate("sum", "x", name), Literal(0)))


MORE = FunctionCall(">", (Value("x", RowNavigation()), FunctionCall("+", (total("A"), total("B")))))


def summed(text: str, steps_max: int | None = 10_000, **more: Any) -> Pattern:
    """A pattern whose X is larger than all that A and B took, which take any row."""
    made = pattern(text, A=None, B=None, X=MORE, **more)
    return msgspec.structs.replace(made, steps_max=steps_max)


def test_a_key_whose_ways_are_too_many_is_set_aside() -> None:
    search = Matcher(summed("(A | B)+ X")).begin()
    search.take(lettered("a" * 60, [1] * 60))
    assert search.matches(None, ended=True) == []
    assert search.given_up == (0, (0, 0), ("a", 1))


def test_what_was_found_before_is_given_out() -> None:
    search = Matcher(summed("(A | B)+? X")).begin()
    search.take(lettered("ax" + "a" * 60, [1, 9] + [1] * 60))
    assert [each.row[1] for each in search.matches(None, ended=True)] == [(0, 0), (0, 1)]
    assert search.given_up is not None
    assert search.given_up[0] == 2


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("A X", {"selection": Selection.ANY, "within": 10_000}),
        ("A X", {"selection": Selection.NEXT}),
        ("A NOT X", {"within": 10_000}),
    ],
)
def test_rows_that_are_skipped_are_steps_too(text: str, more: dict[str, Any]) -> None:
    """Each asks a condition, though no way takes them."""
    search = Matcher(summed(text, steps_max=1_000, **more)).begin()
    search.take(lettered("a" * 2_000, [9] + [1] * 1_999))
    search.matches(None, ended=True)
    assert search.given_up == (0, (0, 0), ("a", 9))


def test_attempts_that_are_long_but_few_are_never_set_aside() -> None:
    """A match that takes many rows spends what it took, and gives most of that back."""
    search = Matcher(summed("A X", steps_max=1_000)).begin()
    search.take(lettered("a" * 5_000, [1] * 5_000))
    search.matches(None, ended=True)
    assert search.given_up is None


def test_steps_spent_are_remembered_between_rounds() -> None:
    """Each attempt alone is short enough; what they take together is not."""
    one, rows = summed("(A | B)+ X", steps_max=3_000, within=10), lettered("a" * 90, [1] * 90)
    whole = Matcher(one).begin()
    whole.take(rows)
    whole.matches(None, ended=True)
    matcher, state, at = Matcher(one), None, 0
    while at < len(rows):
        search = matcher.resume(msgspec.msgpack.decode(msgspec.msgpack.encode(state)))
        search.take(rows[at : at + 1])
        at += 1
        search.matches(at, ended=False)
        state = search.state()
        if search.given_up is not None:
            break
    assert whole.given_up is not None
    assert whole.given_up == search.given_up


def test_an_attempt_that_ends_at_its_second_row_is_counted() -> None:
    """It takes one step, and gives more back."""

    def steps_left(more: int) -> float:
        letters = "ac" + "a" * (11 + more)
        search = Matcher(summed("A C (A | B)+ X", within=12)).begin()
        search.take(lettered(letters, [1] * len(letters)))
        search.matches(None, ended=True)
        return search.steps

    assert steps_left(2) < 10_000 - 3 * 99
    assert steps_left(5) - steps_left(2) == 3 * (10_000 // 100 - 1)


@settings(max_examples=examples(300))
@given(
    seed=st.integers(),
    steps_max=st.integers(1, 60),
    marks=st.lists(st.integers(1, 30), max_size=6),
)
def test_what_is_set_aside_is_decided_by_the_rows(
    seed: int, steps_max: int, marks: list[int]
) -> None:
    """It is what the enumeration of all ways says, however the rows are cut."""
    chance = Random(seed)
    drawn, rows = pattern_by(chance), rows_by(chance)
    one = msgspec.structs.replace(drawn, steps_max=steps_max)
    assume(Matcher(one).steps_max == steps_max)
    assume(not any(isinstance(part, Permute) for part in parts(one.node)))
    oracle = Oracle(one, rows, None, True)
    expected = oracle.results()
    matcher, state, given_up, found, taken = Matcher(one), None, None, [], 0
    for mark in [*sorted(marks), None]:
        search = matcher.resume(msgspec.msgpack.decode(msgspec.msgpack.encode(state)))
        ripe = [row for row in rows if mark is None or row[0] < mark]
        search.take(ripe[taken:])
        found += search.matches(mark, ended=mark is None)
        taken, state, given_up = len(ripe), search.state(), search.given_up
        if given_up is not None:
            break
    assert [(each.row[1], each.measures, each.last_us) for each in found] == expected
    assert given_up == (None if oracle.given_up is None else rows[oracle.given_up])


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("(A | B)+ X", {}),
        ("(A+ B)+ X", {}),
        ("((A+)+ X)", {}),
        ("(A | B){40} X", {}),
        ("A+ X", {"selection": Selection.ANY, "within": 9}),
        ("A X", {"selection": Selection.ANY, "within": 9}),
    ],
)
def test_patterns_with_too_many_ways_are_known(text: str, more: dict[str, Any]) -> None:
    assert count_ways(summed(text, **more)) > 1e9


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("A+ X", {}),
        ("(A B)+ X", {}),
        ("A{1,100} X", {}),
        ("A+ B+ X", {}),
        ("A+ X", {"selection": Selection.NEXT}),
        ("A NOT B X", {}),
    ],
)
def test_patterns_with_few_ways_are_known(text: str, more: dict[str, Any]) -> None:
    assert count_ways(summed(text, **more)) < 1e6


def test_a_pattern_whose_conditions_are_of_the_row_has_one_way() -> None:
    assert count_ways(pattern("(A | B)+ C")) == 1
