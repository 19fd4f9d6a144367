"""Programs: their ways in order of preference, and what is said of them before any row is seen."""

from __future__ import annotations

from itertools import islice

import pytest

from headrace.core.errors import Unsupported
from headrace.core.pattern import Permute, Repeat, RowNavigation, RowsPerMatch, Value, Variable
from headrace.pattern.instructions import Accept, Fork, Program, Take, after
from headrace.pattern.program import INSTRUCTIONS_MAX, compile_pattern
from headrace.pattern.reach import reach, starts
from headrace.pattern.selection import compile_selection
from tests.pattern.letters import node, pattern


def ways(text: str, count: int = 8) -> list[str]:
    """The first ways through the program, in order of preference, whatever the rows are."""
    program = compile_pattern(node(text))

    def walk(at: int, taken: str):
        step = program.instructions[at]
        if isinstance(step, Accept):
            yield taken
        for then in after(step):
            yield from walk(then, taken + (step.name if isinstance(step, Take) else ""))

    return list(islice(walk(program.entry, ""), count))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A B", ["AB"]),
        ("A | B | C", ["A", "B", "C"]),
        ("A?", ["A", ""]),
        ("A??", ["", "A"]),
        ("A{1,3}", ["AAA", "AA", "A"]),
        ("A{1,3}?", ["A", "AA", "AAA"]),
        ("PERMUTE(A, B, C)", ["ABC", "ACB", "BAC", "BCA", "CAB", "CBA"]),
        ("PERMUTE(A?, B)", ["AB", "B", "BA", "B"]),
        ("(A?){2}", ["AA", "A", "A", ""]),
    ],
)
def test_ways_are_in_order_of_preference(text: str, expected: list[str]) -> None:
    assert ways(text) == expected


@pytest.mark.parametrize("text", ["(A*)*", "(A* | B*)*", "((A?)* B?)*", "(A{0,2}){2,}", "(()|A)+"])
def test_no_loop_goes_round_without_a_row(text: str) -> None:
    program = compile_pattern(node(text))
    for at in range(len(program.instructions)):
        later = [i for then in after(program.instructions[at]) for i in reached(program, then)]
        assert isinstance(program.instructions[at], Take) or at not in later


def reached(program: Program, at: int) -> list[int]:
    return program.before_taking(at)


def test_iteration_that_takes_no_row_leaves_the_repetition() -> None:
    assert ways("(() | A)*", 3) == ["", "A", "AA"]


@pytest.mark.parametrize(
    ("text", "always", "first", "only_first"),
    [
        ("A B", True, False, False),
        ("B A", True, True, True),
        ("B+", True, True, True),
        ("B B", True, True, False),
        ("A B?", False, False, False),
        ("A (B | C)", False, False, False),
        ("(A | B) B", True, True, False),
        ("PERMUTE(A, B)", True, True, True),
    ],
)
def test_what_is_said_of_b(text: str, always: bool, first: bool, only_first: bool) -> None:
    program = compile_pattern(node(text))
    assert program.always_takes({"B"}) is always
    assert program.may_be_first({"B"}) is first
    assert program.may_be_only_first({"B"}) is only_first


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A B", {"A"}),
        ("A? (B | C) D", {"A", "B", "C"}),
        ("PERMUTE(A, B)", {"A", "B"}),
        ("A*", None),
        ("^ A", None),
        ("A | ()", None),
    ],
)
def test_starts_are_the_variables_that_can_begin_a_match(
    text: str, expected: set[str] | None
) -> None:
    assert starts(pattern(text)) == expected


def test_every_row_matters_if_it_may_be_given_out_or_seen_later() -> None:
    before = {"before": Value("x", RowNavigation("A", shift=-1))}
    assert starts(pattern("A B", RowsPerMatch.UNMATCHED)) is None
    assert starts(pattern("A B", measures=before)) is None


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (RowNavigation(), 0),
        (RowNavigation(shift=-2), 2),
        (RowNavigation("A", shift=-2), 2),
        (RowNavigation("B", shift=-2), 1),
        (RowNavigation("B", first=True, offset=1, shift=-2), 0),
        (RowNavigation("C", shift=-1), 0),
        (RowNavigation(shift=3), 0),
    ],
)
def test_reach_is_counted_from_the_first_row(place: RowNavigation, expected: int) -> None:
    one = pattern("A B* C", measures={"it": Value("x", place)})
    assert reach(one, compile_pattern(one.node)) == expected


def test_repetitions_are_written_out_up_to_a_limit() -> None:
    with pytest.raises(Unsupported, match=f"more than {INSTRUCTIONS_MAX} instructions"):
        compile_pattern(Repeat(Repeat(Variable("A"), 1_000, 1_000), 1_000, 1_000))


def test_permute_has_at_most_eight_parts() -> None:
    compile_pattern(Permute(tuple(map(Variable, "ABCDEFGH"))))
    with pytest.raises(Unsupported, match="PERMUTE has 9 elements, more than the maximum of 8"):
        compile_pattern(Permute(tuple(map(Variable, "ABCDEFGHI"))))


def test_strict_selection_adds_nothing() -> None:
    one = pattern("A B+ (C | D)")
    program = compile_selection(one.node, one.selection)
    assert sum(isinstance(step, Fork) for step in program.instructions) == 2
