"""What a well formed pattern may not say."""

from __future__ import annotations

import pytest

from headrace.core.errors import BadDefinition
from headrace.testing.reference.patterns import pattern_of
from headrace.testing.reference.validation import refuse_negations, refuse_skip


@pytest.mark.parametrize(
    "pattern",
    ["a NOT c b", "a (NOT c b)+ d", "a NOT c b NOT c d", "a (b NOT c | d) e", "a NOT c b?"],
)
def test_a_not_that_stands_after_a_row_and_before_one_needs_no_within(pattern: str) -> None:
    refuse_negations(pattern_of(pattern), within=False)


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("NOT a b", "NOT A is not allowed before the first row of a match"),
        ("^ NOT a b", "NOT A is not allowed before the first row of a match"),
        ("(a | NOT b) c", "NOT B is not allowed before the first row of a match"),
        ("a? NOT b c", "NOT B is not allowed before the first row of a match"),
        ("a NOT b NOT c d", "NOT C is not allowed next to another NOT"),
        ("(a NOT b) (NOT c d)", "NOT C is not allowed next to another NOT"),
        ("a NOT b c? NOT d e", "NOT D is not allowed next to another NOT"),
        ("a (NOT b c NOT d)+ e", "NOT B is not allowed next to another NOT"),
        ("PERMUTE(a, b NOT c d)", "NOT is not allowed inside PERMUTE"),
        ("x (PERMUTE(a, b NOT c))+", "NOT is not allowed inside PERMUTE"),
        ("a NOT b", "NOT B at the end of the pattern requires WITHIN"),
        ("a (b | c NOT d)", "NOT D at the end of the pattern requires WITHIN"),
        ("(a NOT b){2}", "NOT B at the end of the pattern requires WITHIN"),
    ],
)
def test_a_not_that_makes_no_sense_is_refused(pattern: str, sentence: str) -> None:
    with pytest.raises(BadDefinition) as refused:
        refuse_negations(pattern_of(pattern), within=False)
    assert refused.value.message == sentence


def test_a_not_at_the_end_may_be_said_with_within() -> None:
    refuse_negations(pattern_of("a (b | c NOT d)"), within=True)


NONE = "SKIP TO B: a match may have no row of B"
FIRST = "SKIP TO B could skip to the first row of the match forever"


@pytest.mark.parametrize(
    ("pattern", "first", "last"),
    [
        ("a b", None, None),
        ("a+ b c", None, None),
        ("a b?", NONE, NONE),
        ("a (b | c)", NONE, NONE),
        ("b a", FIRST, FIRST),
        ("b b a", FIRST, None),
        ("b+ a", FIRST, FIRST),
        ("b{2,} a", FIRST, None),
        ("a? b", FIRST, FIRST),
        ("PERMUTE(a, b)", FIRST, FIRST),
        ("(a b)*", None, None),
        ("(a | b) b", FIRST, None),
    ],
)
def test_skip_to_goes_to_a_row_that_is_there_and_not_the_first(
    pattern: str, first: str | None, last: str | None
) -> None:
    for sentence, side in ((first, True), (last, False)):
        assert _refused(pattern, first=side) == sentence


def _refused(pattern: str, *, first: bool) -> str | None:
    try:
        refuse_skip(pattern_of(pattern), "B", {"B"}, first=first)
    except BadDefinition as refused:
        return refused.message
    return None


def test_skip_to_a_subset_is_to_the_rows_of_all_its_variables() -> None:
    refuse_skip(pattern_of("a (b | c)"), "U", {"B", "C"}, first=True)
