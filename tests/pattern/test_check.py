"""The sentence for each pattern that is refused."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.core.errors import Unsupported
from headrace.core.pattern import (
    FunctionCall,
    Literal,
    MatchAggregate,
    MatchId,
    RowNavigation,
    RowsPerMatch,
    Selection,
    Skip,
    Value,
)
from headrace.pattern.check import check
from tests.pattern.letters import pattern

X = Value("x", RowNavigation())


@pytest.mark.parametrize(
    ("text", "more", "sentence"),
    [
        ("A $", {}, "a pattern over a stream cannot use $, because a stream has no last row"),
        ("A (NOT C)* B", {}, "a quantifier is not allowed after NOT"),
        ("A{3,2}", {}, "the quantifier {3,2} is not valid"),
        ("PERMUTE(A, NOT C, B)", {}, "NOT is not allowed inside PERMUTE"),
        ("NOT C A", {}, "a pattern cannot begin with NOT"),
        ("^ NOT C A", {}, "a pattern cannot begin with NOT"),
        ("A? NOT C B", {}, "a pattern cannot begin with NOT"),
        ("A NOT B NOT C D", {}, "NOT is not allowed next to another NOT"),
        ("A NOT B D? NOT C D", {}, "NOT is not allowed next to another NOT"),
        ("A NOT C", {}, "NOT at the end of a pattern requires WITHIN"),
        ("A", {"within": 0}, "the WITHIN interval must be greater than zero"),
        (
            "A {- B -}",
            {"rows": RowsPerMatch.UNMATCHED},
            "WITH UNMATCHED ROWS cannot be used together with {- … -}",
        ),
        ("A B", {"selection": Selection.ANY}, "SKIP TILL ANY requires WITHIN"),
        (
            "A B",
            {"selection": Selection.ANY, "within": 5, "skip": Skip()},
            "SKIP TILL ANY cannot be used with AFTER MATCH SKIP PAST LAST ROW",
        ),
        (
            "A B?",
            {"skip": Skip("to last", "B")},
            "AFTER MATCH SKIP TO LAST B is not allowed: B may match no row",
        ),
        (
            "A B?",
            {"skip": Skip("to last", "A")},
            "AFTER MATCH SKIP TO LAST A is not allowed: it may return to the first row of the "
            "match",
        ),
        (
            "A A",
            {"skip": Skip("to first", "A")},
            "AFTER MATCH SKIP TO FIRST A is not allowed: it may return to the first row of the "
            "match",
        ),
        ("A", {"C": X}, "the pattern has no variable C"),
        ("A", {"subsets": {"U": "AC"}}, "the pattern has no variable C"),
        (
            "A B",
            {"subsets": {"A": "B"}},
            "A cannot be a SUBSET: it is already a pattern variable",
        ),
        (
            "A",
            {"A": MatchAggregate("sum", "x", final=True)},
            "the condition of A cannot use FINAL: the match is not complete yet",
        ),
        (
            "A",
            {"A": FunctionCall("=", (MatchId(), Literal("")))},
            "the condition of A cannot use MATCH_ID(): the match is not complete yet",
        ),
        (
            "A",
            {"measures": {"total": Value("x", RowNavigation("Z"))}},
            "total refers to Z, which is not a pattern variable",
        ),
        (
            "A",
            {"measures": {"total": FunctionCall("sqrt", (X,))}},
            "the function 'sqrt' is not supported in a pattern",
        ),
        (
            "A",
            {"measures": {"total": FunctionCall("neg", (X, X))}},
            "'neg' expects 1 argument, got 2",
        ),
        (
            "A",
            {"measures": {"m": MatchAggregate("mode", "x")}},
            "the aggregate 'mode' is not supported in a pattern",
        ),
    ],
)
def test_refused_pattern_gets_its_sentence(text: str, more: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Unsupported) as refused:
        check(pattern(text, **more))
    assert refused.value.message == sentence


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("(A NOT C)+ B", {}),
        ("A (NOT B | NOT C) D", {}),
        ("A NOT C B?", {}),
        ("A NOT C", {"within": 5}),
        ("A B C?", {"skip": Skip("to last", "B")}),
        ("A (B | C)", {"skip": Skip("to first", "U"), "subsets": {"U": "BC"}}),
        ("A A", {"skip": Skip("to last", "A")}),
    ],
)
def test_pattern_that_can_be_kept_is_not_refused(text: str, more: dict[str, Any]) -> None:
    check(pattern(text, **more))


def test_last_row_may_be_asked_for_in_closed_input() -> None:
    check(pattern("A $"), closed=True)
