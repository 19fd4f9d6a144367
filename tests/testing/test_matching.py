"""The search: preference, ripeness, negation and selection. tests/conformance has many more."""

from __future__ import annotations

import re

import pytest
from chance import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.testing.reference.matching import (
    MATCHES_MAX,
    KeyRows,
    MissingRow,
    SearchSpec,
    find_matches,
)
from headrace.testing.reference.navigation import MatchNames, expression_of
from headrace.testing.reference.patterns import pattern_of, variables


def rows(letters: str, *, closed: bool = True, watermark_us: int | None = None) -> KeyRows:
    """A row for each letter, dated 0, 1, 2, … microseconds."""
    made = tuple({("", "v"): letter} for letter in letters)
    return KeyRows(made, tuple(range(len(letters))), watermark_us, closed)


def search(pattern: str, *, within_us: int | None = None, till: str = "") -> SearchSpec:
    """Variables of one letter are their letter, others are true."""
    tree = pattern_of(pattern)
    names = MatchNames(frozenset({"v"}), {name: (name,) for name in variables(tree)})
    defined = {
        name: expression_of(f"v = '{name.lower()}'", names, define=True)
        for name in variables(tree)
        if len(name) == 1
    }
    return SearchSpec(tree, defined, within_us, till)


def matches(pattern: str, read: KeyRows, start: int = 0, **options: object) -> list[str]:
    ways = find_matches(search(pattern, **options), read, start, number=1)  # type: ignore[arg-type]
    return [" ".join(f"{one.variable}{one.row}" for one in way) for way in ways]


@pytest.mark.parametrize(
    ("pattern", "letters", "expected"),
    [
        ("a b", "ab", ["A0 B1"]),
        ("a b", "aab", []),
        ("a*", "b", [""]),
        ("a+ any", "aaa", ["A0 A1 ANY2"]),
        ("a+? any+", "aaa", ["A0 ANY1 ANY2"]),
        ("(any | a)", "a", ["ANY0"]),
        ("PERMUTE(a, any)", "aa", ["A0 ANY1"]),
        ("(a*)* b", "aab", ["A0 A1 B2"]),
        ("(a?){3} b", "ab", ["A0 B1"]),
        ("a NOT c b", "axb", ["A0 B2"]),
        ("a NOT c b", "acb", []),
        ("^ a $", "a", ["A0"]),
        ("^ a $", "aa", []),
    ],
)
def test_the_most_preferred_way_is_the_match(
    pattern: str, letters: str, expected: list[str]
) -> None:
    assert matches(pattern, rows(letters)) == expected


def test_an_attempt_that_needs_a_row_which_may_come_waits() -> None:
    with pytest.raises(MissingRow):
        matches("a b+", rows("abb", closed=False))
    assert matches("a b+", rows("abbx", closed=False)) == ["A0 B1 B2"]
    assert matches("a b+?", rows("ab", closed=False)) == ["A0 B1"]


def test_when_within_is_over_by_the_watermark_no_row_is_waited_for() -> None:
    with pytest.raises(MissingRow):
        matches("a b+", rows("abb", closed=False, watermark_us=9), within_us=10)
    over = rows("abb", closed=False, watermark_us=10)
    assert matches("a b+", over, within_us=10) == ["A0 B1 B2"]


def test_a_not_at_the_end_holds_until_within_is_over() -> None:
    with pytest.raises(MissingRow):
        matches("a NOT c", rows("ax", closed=False, watermark_us=9), within_us=10)
    over = rows("ax", closed=False, watermark_us=10)
    assert matches("a NOT c", over, within_us=10) == ["A0"]
    assert matches("a NOT c", rows("axc"), within_us=10) == []
    assert matches("a NOT c", rows("axc"), within_us=2) == ["A0"]


def test_skip_till_next_passes_only_what_no_next_step_can_take() -> None:
    assert matches("a b c", rows("axxbac"), till="NEXT") == ["A0 B3 C5"]
    assert matches("a (b c | d)", rows("abd"), till="NEXT") == []
    assert matches("a (b c | d)", rows("axd"), till="NEXT") == ["A0 D2"]


def test_skip_till_any_gives_every_different_match_in_the_order_of_preference() -> None:
    assert matches("a b+", rows("abb"), till="ANY") == ["A0 B1 B2", "A0 B1", "A0 B2"]
    assert matches("a (b | b)", rows("ab"), till="ANY") == ["A0 B1"]


def test_skip_till_any_gives_at_most_so_many() -> None:
    assert len(matches("a b+", rows("a" + "b" * 12), till="ANY")) == MATCHES_MAX


_LETTERS = st.sampled_from("abc")
_QUANTIFIERS = st.sampled_from(["*", "+", "?", "{2}", "{1,}", "{0,2}", "{1,2}"])
_PATTERNS = st.recursive(
    _LETTERS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(" ".join),
        st.tuples(inner, inner).map(lambda two: f"({two[0]} | {two[1]})"),
        st.tuples(inner, _QUANTIFIERS, st.sampled_from(["", "?"])).map(
            lambda parts: f"({parts[0]}){parts[1]}{parts[2]}"
        ),
    ),
    max_leaves=5,
)


@settings(max_examples=examples(200))
@given(pattern=_PATTERNS, letters=st.text("abc", min_size=1, max_size=6))
def test_where_conditions_are_letters_it_is_a_regular_expression(
    pattern: str, letters: str
) -> None:
    expected = re.compile(pattern.replace(" ", "")).match(letters)
    ways = find_matches(search(pattern), rows(letters), 0, number=1)
    assert [len(way) for way in ways] == ([expected.end()] if expected else [])
