"""MATCH_RECOGNIZE is read: its clauses, its pattern as a tree, and each mistake with its line."""

from __future__ import annotations

import pytest

from headrace.core.errors import BadDefinition, HeadraceError
from headrace.core.pattern import (
    Absent,
    Choice,
    End,
    Exclude,
    Node,
    Permute,
    Repeat,
    RowsPerMatch,
    Selection,
    Sequence,
    Skip,
    Start,
    Variable,
)
from headrace.define.definitions import MatchDefinition, QueryDefinition
from headrace.define.statements import read_statements

A, B, C = Variable("A"), Variable("B"), Variable("C")


def definition(clause: str, select: str = "SELECT * FROM s", after: str = "") -> QueryDefinition:
    text = f"CREATE STREAM m AS {select} MATCH_RECOGNIZE (\n{clause}) {after}"
    [found] = read_statements(text, "m.sql")
    assert isinstance(found, QueryDefinition)
    return found


def match(clause: str) -> MatchDefinition:
    found = definition(clause).match
    assert found is not None
    return found


def pattern(text: str) -> Node:
    return match(f"ORDER BY ts PATTERN ({text}) DEFINE a AS x = 1").node


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("a", A),
        ("a b | c", Choice((Sequence((A, B)), C))),
        ("(a | b) c", Sequence((Choice((A, B)), C))),
        ("a* b+ c?", Sequence((Repeat(A, 0, None), Repeat(B, 1, None), Repeat(C, 0, 1)))),
        ("a*? b+?", Sequence((Repeat(A, 0, None, False), Repeat(B, 1, None, False)))),
        ("a??", Repeat(A, 0, 1, False)),
        ("a{2} b{2,}", Sequence((Repeat(A, 2, 2), Repeat(B, 2, None)))),
        ("a{,3} b{1,3}?", Sequence((Repeat(A, 0, 3), Repeat(B, 1, 3, False)))),
        ("^ a $", Sequence((Start(), A, End()))),
        ("a {- b+ -} c", Sequence((A, Exclude(Repeat(B, 1, None)), C))),
        ("PERMUTE(a, b, c)", Permute((A, B, C))),
        ("a NOT b c", Sequence((A, Absent("B"), C))),
        ("()", Sequence(())),
        ("a | ()", Choice((A, Sequence(())))),
        ("(a b){2}", Repeat(Sequence((A, B)), 2, 2)),
    ],
)
def test_a_pattern_is_read_as_a_tree(text: str, node: Node) -> None:
    assert pattern(text) == node


def test_all_clauses_are_read() -> None:
    found = match(
        "PARTITION BY user, url ORDER BY ts MEASURES first(a.ts) AS began, FINAL count(*) AS n\n"
        "ALL ROWS PER MATCH WITH UNMATCHED ROWS AFTER MATCH SKIP TO LAST b\n"
        "PATTERN (a b) WITHIN INTERVAL 5 MINUTES SKIP TILL NEXT SUBSET u = (a, b)\n"
        "DEFINE a AS x > 1, b AS x > last(a.x, 2)"
    )
    assert found.keys == ("user", "url")
    assert [(m.name, m.sql) for m in found.measures] == [
        ("began", "nav_first ( a . ts )"),
        ("n", "final_agg_count ( * )"),
    ]
    assert (found.rows, found.skip) == (RowsPerMatch.UNMATCHED, Skip("to last", "B"))
    assert (found.within_us, found.selection) == (300_000_000, Selection.NEXT)
    assert found.subsets == (("U", ("A", "B")),)
    assert [(c.name, c.sql, c.origin.line) for c in found.conditions] == [
        ("A", "x > 1", 5),
        ("B", "x > nav_last ( a . x , 2 )", 5),
    ]


def test_the_select_over_the_matches_keeps_its_lines() -> None:
    found = definition("ORDER BY ts\nPATTERN (a)", "SELECT n + 1 AS n FROM s", "AS m\nWHERE n > 2")
    assert found.query == "SELECT * FROM s"
    assert found.match is not None
    assert found.match.select == "SELECT n + 1 AS n FROM _matched\n\n  AS m\nWHERE n > 2"


def test_a_column_may_have_the_name_of_a_function_or_clause() -> None:
    found = match("ORDER BY ts MEASURES a.first AS one, last(a.count) AS pattern PATTERN (a)")
    assert [(m.name, m.sql) for m in found.measures] == [
        ("one", "a . first"),
        ("pattern", "nav_last ( a . count )"),
    ]


def test_skip_till_any_goes_on_with_the_next_row() -> None:
    found = match("ORDER BY ts PATTERN (a b) WITHIN INTERVAL 1 MINUTE SKIP TILL ANY")
    assert (found.selection, found.skip) == (Selection.ANY, Skip("to next row"))


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("PATTERN (a)", "expected ORDER BY, got 'PATTERN'"),
        ("ORDER BY ts PATTERN (a", "expected ), got the end of the statement"),
        ("ORDER BY ts PATTERN ()", "expected a pattern element; write () for the empty pattern"),
        (
            "ORDER BY ts PATTERN (a | )",
            "expected a pattern element; write () for the empty pattern",
        ),
        (
            "ORDER BY ts MEASURES FINAL PREV(x) AS y PATTERN (a)",
            "RUNNING and FINAL are only allowed before FIRST, LAST or an aggregate",
        ),
        ("ORDER BY ts PATTERN (a{3,2})", "the upper bound of {3,2} must be at least 3"),
        ("ORDER BY ts PATTERN (a{,})", None),
        ("ORDER BY ts PATTERN (a{})", "expected a number of repetitions between { and }"),
        ("ORDER BY ts PATTERN (NOT a*)", "a quantifier is not allowed after NOT, ^ or $"),
        (
            "ORDER BY ts PATTERN (a) WITHIN INTERVAL 0 DAYS",
            "the interval must be greater than zero",
        ),
        ("ORDER BY ts MEASURES x PATTERN (a)", "expected AS, got 'PATTERN'"),
        ("ORDER BY ts MEASURES AS y PATTERN (a)", "expected an expression"),
        ("ORDER BY ts PATTERN (a) DEFINE a x > 1", "expected AS, got 'x'"),
    ],
)
def test_a_mistake_is_told(clause: str, message: str | None) -> None:
    if message is None:
        assert match(clause).node == Repeat(A, 0, None)
        return
    with pytest.raises(HeadraceError) as refused:
        definition(clause)
    assert refused.value.message == message


def test_it_stands_after_a_stream() -> None:
    with pytest.raises(BadDefinition, match="must follow FROM and the name of a stream"):
        definition("ORDER BY ts PATTERN (a)", "SELECT * FROM s x")
