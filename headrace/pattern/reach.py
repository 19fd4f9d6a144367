"""Which rows can matter: those that can begin a match, and those that PREV can see before it.

A search may drop every row that is more than `reach` rows before the row where it continues, and of
a key that has no row which one of `starts` can take, if it has no attempt in progress.
tests/pattern/test_cuts.py checks that nothing that is let go is missed.
"""

from __future__ import annotations

from headrace.core.pattern import (
    Classifier,
    Expression,
    Pattern,
    RowNavigation,
    RowsPerMatch,
    Value,
)
from headrace.pattern.evaluate import leaves
from headrace.pattern.instructions import AssertFirst, Program
from headrace.pattern.program import compile_pattern


def starts(pattern: Pattern) -> frozenset[str] | None:
    """The variables that can take a match's first row; None: every row matters, as there may be an
    empty match, unmatched rows are given out, `^` is asked, or PREV sees rows before the match.

    >>> from headrace.core.pattern import Repeat, Sequence, Variable
    >>> node = Sequence((Repeat(Variable("A"), 0, 1), Variable("B"), Variable("C")))
    >>> sorted(starts(Pattern(node, ())))
    ['A', 'B']
    """
    program = compile_pattern(pattern.node)
    anchored = any(isinstance(step, AssertFirst) for step in program.instructions)
    if anchored or pattern.rows is RowsPerMatch.UNMATCHED or reach(pattern, program):
        return None
    first = program.first_takers()
    return None if program.may_end(program.entry, first) else first


def reach(pattern: Pattern, program: Program) -> int:
    """How many rows before a match's first row its conditions and measures can see."""
    distances = _distances(pattern, program)
    asked = [(name, part) for name, part in pattern.conditions if name in distances]
    everything = [*asked, *((None, measure) for _, measure in pattern.measures)]
    return max(0, *(_back(part, name, distances) for name, part in everything), 0)


def _distances(pattern: Pattern, program: Program) -> dict[str, int]:
    """How many rows are taken before a variable's or subset's first, at least."""
    distances = program.distances()
    for subset, members in pattern.subsets:
        known = [distances[member] for member in members if member in distances]
        distances[subset] = min(known, default=0)
    return distances


def _back(expression: Expression, variable: str | None, distances: dict[str, int]) -> int:
    places = [leaf.place for leaf in leaves(expression) if isinstance(leaf, Value | Classifier)]
    return max((-p.shift - _distance(p, variable, distances) for p in places), default=0)


def _distance(place: RowNavigation, variable: str | None, distances: dict[str, int]) -> int:
    """How far after a match's first row the row is, at least, that the place counts from."""
    if place.name is not None:
        return distances.get(place.name, 0) + (place.offset if place.first else 0)
    if place.first:
        return place.offset
    return max(0, distances[variable] - place.offset) if variable is not None else 0
