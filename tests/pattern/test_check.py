"""The sentence for each pattern that is refused."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.core.errors import Unsupported
from headrace.core.pattern import (
    Constant,
    FunctionCall,
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
        ("A $", {}, "a stream has no last row, so its pattern cannot ask for it with $"),
        ("A (NOT C)* B", {}, "NOT in a pattern cannot be repeated"),
        ("A{3,2}", {}, "nothing can be repeated 3 to 2 times"),
        ("PERMUTE(A, NOT C, B)", {}, "NOT cannot stand inside PERMUTE"),
        ("NOT C A", {}, "a pattern cannot begin with NOT"),
        ("^ NOT C A", {}, "a pattern cannot begin with NOT"),
        ("A? NOT C B", {}, "a pattern cannot begin with NOT"),
        ("A NOT B NOT C D", {}, "NOT cannot stand next to another NOT"),
        ("A NOT B D? NOT C D", {}, "NOT cannot stand next to another NOT"),
        ("A NOT C", {}, "NOT at the end of a pattern requires WITHIN"),
        ("A", {"within": 0}, "WITHIN must be longer than nothing"),
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
            "AFTER MATCH SKIP TO LAST B is not possible, as B may take no row",
        ),
        (
            "A B?",
            {"skip": Skip("to last", "A")},
            "AFTER MATCH SKIP TO LAST A is not possible, as that may be the row where the match "
            "began",
        ),
        (
            "A A",
            {"skip": Skip("to first", "A")},
            "AFTER MATCH SKIP TO FIRST A is not possible, as that may be the row where the match "
            "began",
        ),
        ("A", {"C": X}, "the pattern has no variable C"),
        ("A", {"subsets": {"U": "AC"}}, "the pattern has no variable C"),
        (
            "A B",
            {"subsets": {"A": "B"}},
            "A is a variable of the pattern, which cannot be a SUBSET too",
        ),
        (
            "A",
            {"A": MatchAggregate("sum", "x", final=True)},
            "the condition of A uses FINAL, and the match is not complete then",
        ),
        (
            "A",
            {"A": FunctionCall("=", (MatchId(), Constant("")))},
            "the condition of A uses MATCH_ID(), and the match is not complete then",
        ),
        (
            "A",
            {"measures": {"total": Value("x", RowNavigation("Z"))}},
            "total reads Z, which is no variable of the pattern",
        ),
        (
            "A",
            {"measures": {"total": FunctionCall("sqrt", (X,))}},
            "a pattern's expressions have no function 'sqrt'",
        ),
        (
            "A",
            {"measures": {"total": FunctionCall("neg", (X, X))}},
            "'neg' does not take 2 arguments",
        ),
        (
            "A",
            {"measures": {"m": MatchAggregate("mode", "x")}},
            "the aggregate 'mode' is not known in a pattern",
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
