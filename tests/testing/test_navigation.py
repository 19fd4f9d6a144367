"""Expressions of DEFINE and MEASURES over the rows of a match."""

from __future__ import annotations

import pytest

from headrace.core.errors import BadDefinition, HeadraceError, UnknownColumn, Unsupported
from headrace.testing.reference.navigation import (
    MatchContext,
    MatchedRow,
    MatchNames,
    expression_of,
)
from headrace.testing.reference.values import Row, Value

# The rows of the key; those from 1 to 4 are matched, as a b b c.
ROWS: list[Row] = [{("", "x"): x, ("", "v"): f"v{x}"} for x in (10, 11, 12, 13, None, 15)]
TAKEN = (MatchedRow(1, "A"), MatchedRow(2, "B"), MatchedRow(3, "B"), MatchedRow(4, "C"))
NAMES = MatchNames(
    frozenset({"x", "v"}), {"A": ("A",), "B": ("B",), "C": ("C",), "D": ("D",), "U": ("A", "B")}
)


def row_at(number: int) -> Row | None:
    return ROWS[number] if 0 <= number < len(ROWS) else None


def value(text: str, so_far: int = 4) -> Value:
    seen = MatchContext(TAKEN[:so_far], TAKEN, row_at, number=7, id="id")
    return expression_of(text, NAMES, define=False).value(seen)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x", None),
        ("v", "vNone"),
        ("a.x", 11),
        ("B.X", 13),
        ("u.x", 13),
        ("d.x", None),
        ("FIRST(x)", 11),
        ("FIRST(b.x, 1)", 13),
        ("LAST(b.x, 1)", 12),
        ("LAST(b.x, 2)", None),
        ("first(u.x)", 11),
        ("PREV(a.x)", 10),
        ("PREV(a.x, 2)", None),
        ("NEXT(c.x)", 15),
        ("NEXT(c.x, 2)", None),
        ("NEXT(d.x)", None),
        ("PREV(b.x, 0)", 13),
        ("PREV(FIRST(b.x, 1), 3)", 10),
        ("NEXT(LAST(u.x), 2)", 15),
        ("FIRST(b.x * 2 + 1)", 25),
        ("LAST(b.x) - FIRST(b.x)", 1),
        ("CASE WHEN count(b.*) > 1 THEN 'many' END", "many"),
        ("count(*)", 4),
        ("count(x)", 3),
        ("count(d.*)", 0),
        ("sum(x)", 36),
        ("sum(b.x)", 25),
        ("avg(b.x)", 12.5),
        ("min(u.x)", 11),
        ("max(d.x)", None),
        ("count(DISTINCT v)", 4),
        ("array_agg(x)", [11, 12, 13]),
        ("collect_list(d.x)", []),
        ("CLASSIFIER()", "C"),
        ("CLASSIFIER(u)", "B"),
        ("CLASSIFIER(d)", None),
        ("FIRST(CLASSIFIER())", "A"),
        ("PREV(CLASSIFIER(a))", None),
        ("PREV(LAST(CLASSIFIER(), 1), 2)", "A"),
        ("array_agg(CLASSIFIER(u))", ["A", "B", "B"]),
        ("MATCH_NUMBER() * 2", 14),
        ("MATCH_ID()", "id"),
        ("'constant'", "constant"),
    ],
)
def test_an_expression_speaks_of_the_whole_match(text: str, expected: Value) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x", 12),
        ("LAST(x)", 12),
        ("RUNNING LAST(x)", 12),
        ("FINAL LAST(b.x)", 13),
        ("FIRST(c.v)", None),
        ("FINAL FIRST(c.v)", "vNone"),
        ("count(*)", 2),
        ("FINAL count(*)", 4),
        ("RUNNING sum(x) + FINAL sum(x)", 23 + 36),
        ("PREV(FINAL LAST(b.x))", 12),
        ("PREV(RUNNING LAST(b.x))", 11),
        ("NEXT(CLASSIFIER())", "B"),
    ],
)
def test_running_sees_the_rows_so_far_and_final_all(text: str, expected: Value) -> None:
    assert value(text, so_far=2) == expected


@pytest.mark.parametrize(
    ("text", "error", "sentence"),
    [
        ("y", UnknownColumn, "there is no column 'y' in the pattern's input"),
        ("e.x", BadDefinition, "there is no pattern variable 'e'"),
        ("CLASSIFIER(e)", BadDefinition, "there is no pattern variable 'e'"),
        (
            "LAST(a.x + x)",
            BadDefinition,
            "LAST(a.x + x) uses columns of more than one pattern variable",
        ),
        (
            "sum(a.x + b.x)",
            BadDefinition,
            "SUM(a.x + b.x) uses columns of more than one pattern variable",
        ),
        ("FIRST(LAST(x))", BadDefinition, "LAST(x) is not allowed inside FIRST(LAST(x))"),
        ("PREV(NEXT(x))", BadDefinition, "NEXT(x) is not allowed inside PREV(NEXT(x))"),
        ("max(PREV(x))", BadDefinition, "PREV(x) is not allowed inside MAX(PREV(x))"),
        (
            "FIRST(x, 1.5)",
            BadDefinition,
            "FIRST(x, 1.5): the offset must be a non-negative integer",
        ),
        ("median(x)", Unsupported, "a pattern does not support the aggregate MEDIAN(x)"),
        ("FINAL upper(v)", BadDefinition, "RUNNING and FINAL are only allowed before FIRST"),
        ("a.x, b.x", BadDefinition, "'a.x, b.x' is not a single expression"),
    ],
)
def test_what_has_no_meaning_is_refused(
    text: str, error: type[HeadraceError], sentence: str
) -> None:
    with pytest.raises(error) as refused:
        value(text)
    assert refused.value.message.startswith(sentence)


@pytest.mark.parametrize(
    "text", ["FINAL LAST(x) > 1", "PREV(FINAL LAST(x)) > 1", "MATCH_ID() = ''"]
)
def test_a_condition_does_not_know_how_the_match_ends(text: str) -> None:
    with pytest.raises(BadDefinition):
        expression_of(text, NAMES, define=True)
