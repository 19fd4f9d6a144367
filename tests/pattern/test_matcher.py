"""What is found, in letters: `found("A B+ C", "xabbc") == "A1 B2 B3 C4"`."""

from __future__ import annotations

import time

import pytest

from headrace.core.pattern import (
    Classifier,
    FunctionCall,
    Literal,
    MatchAggregate,
    MatchId,
    MatchNumber,
    RowNavigation,
    RowsPerMatch,
    Selection,
    Skip,
    Value,
)
from headrace.pattern.matcher import Matcher
from tests.pattern.letters import found, lettered, measured, pattern

X = Value("x", RowNavigation())
NEXT, ANY = Selection.NEXT, Selection.ANY


def in_letters(letters: str) -> FunctionCall:
    return FunctionCall("in", (Value("letter", RowNavigation()), *map(Literal, letters)))


@pytest.mark.parametrize(
    ("text", "letters", "expected"),
    [
        ("A B+ C", "xabbcabc", "A1 B2 B3 C4, A5 B6 C7"),
        ("A B+ C", "abxabc", "A3 B4 C5"),
        ("A | A B", "ab", "A0"),
        ("A B | A", "ab", "A0 B1"),
        ("A{2}", "aaaaa", "A0 A1, A2 A3"),
        ("A{,2} B", "aaab", "A1 A2 B3"),
        ("A{2,}", "abaaa", "A2 A3 A4"),
        ("A{1,2}? B?", "aab", "A0, A1 B2"),
        ("A B*?", "abb", "A0"),
        ("PERMUTE(A, B, C)", "bca", "B0 C1 A2"),
        ("A {- B -} C", "abc", "A0 C2"),
        ("A*", "aba", "A0, ()1, A2"),
        ("()", "ab", "()0, ()1"),
        ("(() | A)*", "a", "()0"),
        ("(A?)* B", "aab", "A0 A1 B2"),
        ("(A? B?)* C", "aabac", "A0 A1 B2 A3 C4"),
        ("((A*)* B?)+ C", "aabac", "A0 A1 B2 A3 C4"),
        ("^ A", "aa", "A0"),
        ("A $", "aa", "A1"),
        ("A NOT C B", "axxb", "A0 B3"),
        ("A NOT C B", "axcb", ""),
    ],
)
def test_most_preferred_match_is_found(text: str, letters: str, expected: str) -> None:
    assert found(text, letters) == expected


def test_preference_goes_before_length() -> None:
    assert found("(A | A A) (B | A B)", "aab", A=in_letters("a")) == "A0 A1 B2"


def test_permute_prefers_the_order_of_writing() -> None:
    assert found("PERMUTE(A, B)", "xx", A=None, B=None) == "A0 B1"


def test_permute_of_repetitions_prefers_an_order_before_a_length() -> None:
    assert found("PERMUTE(A+, B)", "xxx", A=None, B=None) == "A0 A1 B2"


@pytest.mark.parametrize(
    ("skip", "expected"),
    [
        (Skip(), "A0 B1 B2"),
        (Skip("to next row"), "A0 B1 B2, A1 B2"),
        (Skip("to first", "B"), "A0 B1 B2, A1 B2"),
        (Skip("to last", "B"), "A0 B1 B2"),
    ],
)
def test_search_goes_on_where_skip_says(skip: Skip, expected: str) -> None:
    assert found("A B+", "xyy", skip=skip, A=None, B=in_letters("y")) == expected


def test_skip_may_go_to_a_subset() -> None:
    skip = Skip("to last", "U")
    assert found("A (B | C)", "abac", skip=skip, subsets={"U": "BC"}) == "A0 B1, A2 C3"


def test_within_bounds_the_rows_of_a_match() -> None:
    assert found("A B+", "abbbb", within=3) == "A0 B1 B2"


def test_skip_till_next_passes_over_what_no_step_can_take() -> None:
    assert found("A B C", "axbyc", selection=NEXT) == "A0 B2 C4"
    assert found("A (B C | C)", "axcb", selection=NEXT) == "A0 C2"


def test_skip_till_next_does_not_pass_over_what_a_step_can_take() -> None:
    assert found("A (B C | D)", "abdc", selection=NEXT) == "A0 B1 C3"
    assert found("A (B C | D)", "abd", selection=NEXT) == ""


def test_step_behind_an_anchor_cannot_come_next() -> None:
    assert found("A ($ B | C)", "abc", selection=NEXT) == "A0 C2"


def test_skip_till_next_takes_permute_as_a_choice_of_orders() -> None:
    assert found("PERMUTE(A, B, C)", "acb", selection=NEXT) == "A0 C1 B2"
    assert found("PERMUTE(A, B, C)", "acbc", selection=NEXT) == "A0 B2 C3"


def test_skip_till_next_does_not_pass_over_an_absent_variable() -> None:
    assert found("A NOT C B", "axcb", selection=NEXT) == ""
    assert found("A NOT C B", "axxb", selection=NEXT) == "A0 B3"


def test_skip_till_any_gives_every_match() -> None:
    expected = "A0 B1 C2, A0 B1 C4, A0 B3 C4"
    assert found("A B C", "abcbc", selection=ANY, within=10) == expected


def test_skip_till_any_gives_a_match_once() -> None:
    assert found("A (B | B)", "ab", selection=ANY, within=10) == "A0 B1"


def test_skip_till_any_gives_a_thousand_matches_of_a_start() -> None:
    matches = found("A B B B", "a" + "b" * 30, selection=ANY, within=100)
    assert len(matches.split(", ")) == 1000


def test_absence_at_the_end_is_decided_when_its_time_is_over() -> None:
    assert found("A NOT C", "ax", mark=4, within=5) == ""
    assert found("A NOT C", "ax", mark=5, within=5) == "A0"
    assert found("A NOT C", "axc", within=5) == ""
    assert found("A NOT C", "axxxxc", mark=6, within=5) == "A0"


def test_match_waits_as_long_as_a_more_preferred_one_may_come() -> None:
    assert found("A B*", "abb", mark=3) == ""
    assert found("A B*", "abbx", mark=4) == "A0 B1 B2"
    assert found("A B*", "abb", mark=10, within=10) == "A0 B1 B2"
    assert found("A B*?", "a", mark=1) == "A0"


def test_due_is_the_deadline_of_the_attempt_that_waits() -> None:
    search = Matcher(pattern("A B*", within=10)).begin()
    search.take(lettered("xab"))
    assert search.matches(3) == []
    assert search.due_us() == 11
    assert search.matches(10) == []
    assert len(search.matches(11)) == 2
    assert search.due_us() is None


def test_search_that_waits_for_nothing_has_no_state() -> None:
    search = Matcher(pattern("A B")).begin()
    search.take(lettered("xxabxx"))
    assert len(search.matches(6)) == 2
    assert search.state() is None


def test_state_has_the_rows_that_are_needed_and_no_others() -> None:
    falling = FunctionCall("<", (X, Value("x", RowNavigation(shift=-1))))
    search = Matcher(pattern("A B", A=falling)).begin()
    search.take(lettered("xxab", [3, 2, 5, 1]))
    search.matches(4)
    assert [row[1][1] for row in search.state()[0]] == [2, 3]


def test_empty_matches_may_be_shown_or_omitted() -> None:
    assert found("A*", "ba", rows=RowsPerMatch.SHOW_EMPTY) == "()0, A1"
    assert found("A*", "ba", rows=RowsPerMatch.OMIT_EMPTY) == "A1"
    assert found("A*", "ba", rows=RowsPerMatch.ONE) == "()0, A1"


def test_rows_of_no_match_are_given_if_asked_for() -> None:
    assert found("A NOT C B", "xaxbx", rows=RowsPerMatch.UNMATCHED) == "-0, A1 B3, -2, -4"
    skip = Skip("to next row")
    assert found("A B", "xab", rows=RowsPerMatch.UNMATCHED, skip=skip) == "-0, A1 B2"


def test_measures_of_a_match_are_final_when_it_gives_one_row() -> None:
    count = MatchAggregate("count", None, "B")
    assert measured(count, "A B*", "abba") == [2, 0]
    assert measured(Value("x", RowNavigation("B", first=True, offset=1)), "A B*", "abba") == [
        2,
        None,
    ]


def test_measures_of_all_rows_run_unless_final() -> None:
    running = MatchAggregate("sum", "x")
    final = MatchAggregate("sum", "x", final=True)
    assert measured(running, "A B*", "abb", rows=RowsPerMatch.SHOW_EMPTY) == [0, 1, 3]
    assert measured(final, "A B*", "abb", rows=RowsPerMatch.SHOW_EMPTY) == [3, 3, 3]


def test_measures_of_an_empty_match_are_of_no_rows() -> None:
    count, label, number = MatchAggregate("count", None), Classifier(RowNavigation()), MatchNumber()
    assert measured(count, "A*", "b") == [0]
    assert measured(label, "A*", "b") == [None]
    assert measured(X, "A*", "b") == [None]
    assert measured(number, "A*", "bb") == [1, 2]


def test_excluded_rows_count_in_measures() -> None:
    count = MatchAggregate("count", None)
    assert measured(count, "A {- B -} C", "abc", rows=RowsPerMatch.SHOW_EMPTY) == [1, 3]


def test_next_in_a_measure_waits_for_its_row() -> None:
    search = Matcher(
        pattern("A B", RowsPerMatch.ONE, measures={"next": Value("x", RowNavigation(shift=1))})
    ).begin()
    search.take(lettered("ab"))
    assert search.matches(100) == []
    assert search.due_us() is None
    search.take([(100, (0, 2), ("x", 7))])
    assert [given.measures for given in search.matches(101)] == [(7,)]


def test_match_id_does_not_depend_on_how_the_match_was_found() -> None:
    one = measured(MatchId(), "A B", "xab")
    other = measured(MatchId(), "A B*", "xab")
    assert one == other
    assert measured(MatchId(), "A C", "xab", C=None) != one
    assert measured(MatchId(), "A*", "xx")[0] != measured(MatchId(), "A*", "xx")[1]


def test_conditions_may_ask_for_the_match_so_far() -> None:
    above = FunctionCall(">", (X, Value("x", RowNavigation("A"))))
    assert found("A B+", "axxx", B=above) == "A0 B1 B2 B3"
    few = FunctionCall("<=", (MatchAggregate("count", None, "B"), Literal(2)))
    assert found("A B+", "axxx", B=few) == "A0 B1 B2"


def test_match_may_be_very_long() -> None:
    letters = "a" + "b" * 100_000 + "c"
    count = MatchAggregate("count", None)
    above = FunctionCall(">", (X, Value("x", RowNavigation("A"))))
    assert measured(count, "A B* C", letters) == [100_002]
    assert measured(count, "A (B | B)*? C", letters) == [100_002]
    assert measured(count, "A B* C", letters, B=above) == [100_002]


def test_failing_search_takes_time_in_proportion_to_the_rows() -> None:
    began = time.monotonic()
    assert found("A (B* B*)* (B | B)* C", "a" + "b" * 2_000) == ""
    assert time.monotonic() - began < 5
