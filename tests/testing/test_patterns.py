"""Patterns from text to tree."""

from __future__ import annotations

import pytest

from headrace.core.errors import BadDefinition
from headrace.testing.reference.patterns import (
    ChoicePattern,
    EndAnchor,
    NotPattern,
    Pattern,
    PermutePattern,
    RepeatPattern,
    RowPattern,
    SequencePattern,
    StartAnchor,
    pattern_of,
    variables,
)

A, B, C = RowPattern("A"), RowPattern("B"), RowPattern("C")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", A),
        ("a b c", SequencePattern((A, B, C))),
        ("a | b", ChoicePattern((A, B))),
        ("a b | c", ChoicePattern((SequencePattern((A, B)), C))),
        ("a (b | c)", SequencePattern((A, ChoicePattern((B, C))))),
        ("()", SequencePattern()),
        ("a | ()", ChoicePattern((A, SequencePattern()))),
        ("^ a $", SequencePattern((StartAnchor(), A, EndAnchor()))),
        ("PERMUTE(a, b c)", PermutePattern((A, SequencePattern((B, C))))),
        ("permute (a | b, c)", PermutePattern((ChoicePattern((A, B)), C))),
        (
            "a {- b c -}",
            SequencePattern((A, SequencePattern((RowPattern("B", True), RowPattern("C", True))))),
        ),
        ("{- a -} a", SequencePattern((RowPattern("A", True), A))),
        (
            "{- a {- b -} c -}",
            SequencePattern((RowPattern("A", True), RowPattern("B", True), RowPattern("C", True))),
        ),
        ("a NOT b c", SequencePattern((A, NotPattern("B"), C))),
        ("a not B c", SequencePattern((A, NotPattern("B"), C))),
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
    assert pattern_of(f"a{text}") == RepeatPattern(A, low, high)
    assert pattern_of(f"a{text}?") == RepeatPattern(A, low, high, reluctant=True)
    assert pattern_of(f"(a){text} b") == SequencePattern((RepeatPattern(A, low, high), B))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "a part of the pattern is missing"),
        ("a |", "a part of the pattern is missing"),
        ("| a", "a part of the pattern is missing"),
        ("PERMUTE(a, )", "a part of the pattern is missing"),
        ("(a", "the pattern has 'the end' where ')' was expected"),
        ("a)", "the pattern has ')' where it is not valid"),
        ("a, b", "the pattern has ',' where it is not valid"),
        ("{- a", "the pattern has 'the end' where '-}' was expected"),
        ("a -} b", "the pattern has '-' where it is not valid"),
        ("a+*", "the pattern has '*' where it is not valid"),
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
