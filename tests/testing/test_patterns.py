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
        ("(a", "expected ')' in the pattern, got the end"),
        ("a)", "unexpected ')' in the pattern"),
        ("a, b", "unexpected ',' in the pattern"),
        ("{- a", "expected '-}' in the pattern, got the end"),
        ("a -} b", "unexpected '-' in the pattern"),
        ("a+*", "unexpected '*' in the pattern"),
        ("a???", "expected a pattern variable"),
        ("+", "expected a pattern variable"),
        ("1a", "expected a pattern variable"),
        ("'a'", "expected a pattern variable"),
        ("a{}", "the maximum of a quantifier must be at least 1"),
        ("a{0}", "the maximum of a quantifier must be at least 1"),
        ("a{,0}", "the maximum of a quantifier must be at least 1"),
        ("a{3,2}", "the minimum of a quantifier, 3, exceeds its maximum, 2"),
        ("a{b}", "expected '}' in the pattern, got 'b'"),
        ("NOT", "expected a pattern variable after NOT"),
        ("a NOT (b)", "expected a pattern variable after NOT"),
        ("a NOT b* c", "NOT B must not have a quantifier"),
        ("a (NOT b)? c", "NOT B must not have a quantifier"),
    ],
)
def test_what_is_no_pattern_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(BadDefinition) as refused:
        pattern_of(text)
    assert refused.value.message == sentence


def test_variables_are_named_once_those_of_not_too() -> None:
    assert variables(pattern_of("a (b | a)+ NOT c PERMUTE(d, b)")) == ["A", "B", "C", "D"]
