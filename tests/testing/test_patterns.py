"""Patterns from text to tree."""

from __future__ import annotations

import pytest

from headrace.core.errors import BadDefinition
from headrace.testing.reference.patterns import (
    Begin,
    Choice,
    End,
    Not,
    Pattern,
    Permute,
    Repeat,
    Sequence,
    Take,
    pattern_of,
    variables,
)

A, B, C = Take("A"), Take("B"), Take("C")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", A),
        ("a b c", Sequence((A, B, C))),
        ("a | b", Choice((A, B))),
        ("a b | c", Choice((Sequence((A, B)), C))),
        ("a (b | c)", Sequence((A, Choice((B, C))))),
        ("()", Sequence()),
        ("a | ()", Choice((A, Sequence()))),
        ("^ a $", Sequence((Begin(), A, End()))),
        ("PERMUTE(a, b c)", Permute((A, Sequence((B, C))))),
        ("permute (a | b, c)", Permute((Choice((A, B)), C))),
        ("a {- b c -}", Sequence((A, Sequence((Take("B", True), Take("C", True)))))),
        ("{- a -} a", Sequence((Take("A", True), A))),
        ("{- a {- b -} c -}", Sequence((Take("A", True), Take("B", True), Take("C", True)))),
        ("a NOT b c", Sequence((A, Not("B"), C))),
        ("a not B c", Sequence((A, Not("B"), C))),
        ("`a`", A),
    ],
)
def test_a_pattern_is_read(text: str, expected: Pattern) -> None:
    assert pattern_of(text) == expected


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("*", 0, None),
        ("+", 1, None),
        ("?", 0, 1),
        ("{3}", 3, 3),
        ("{2,}", 2, None),
        ("{,4}", 0, 4),
        ("{2,4}", 2, 4),
        ("{ 2 , 4 }", 2, 4),
        ("{,}", 0, None),
    ],
)
def test_every_quantifier_is_greedy_or_reluctant(text: str, low: int, high: int | None) -> None:
    assert pattern_of(f"a{text}") == Repeat(A, low, high)
    assert pattern_of(f"a{text}?") == Repeat(A, low, high, reluctant=True)
    assert pattern_of(f"(a){text} b") == Sequence((Repeat(A, low, high), B))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "a part of the pattern is missing"),
        ("a |", "a part of the pattern is missing"),
        ("| a", "a part of the pattern is missing"),
        ("PERMUTE(a, )", "a part of the pattern is missing"),
        ("(a", "the pattern has 'the end' where ')' was expected"),
        ("a)", "the pattern has ')' where it means nothing"),
        ("a, b", "the pattern has ',' where it means nothing"),
        ("{- a", "the pattern has 'the end' where '-}' was expected"),
        ("a -} b", "the pattern has '-' where it means nothing"),
        ("a+*", "the pattern has '*' where it means nothing"),
        ("a???", "a variable is missing in the pattern"),
        ("+", "a variable is missing in the pattern"),
        ("1a", "a variable is missing in the pattern"),
        ("'a'", "a variable is missing in the pattern"),
        ("a{}", "a quantifier must allow one repetition or more"),
        ("a{0}", "a quantifier must allow one repetition or more"),
        ("a{,0}", "a quantifier must allow one repetition or more"),
        ("a{3,2}", "a quantifier cannot be at least 3 and at most 2"),
        ("a{b}", "the pattern has 'b' where '}' was expected"),
        ("NOT", "NOT takes one variable"),
        ("a NOT (b)", "NOT takes one variable"),
        ("a NOT b* c", "NOT B may not be repeated"),
        ("a (NOT b)? c", "NOT B may not be repeated"),
    ],
)
def test_what_is_no_pattern_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(BadDefinition) as refused:
        pattern_of(text)
    assert refused.value.message == sentence


def test_variables_are_named_once_those_of_not_too() -> None:
    assert variables(pattern_of("a (b | a)+ NOT c PERMUTE(d, b)")) == ["A", "B", "C", "D"]
