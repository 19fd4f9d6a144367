"""Validation of a pattern that is syntactically correct.

`outcomes` walks every way through a pattern at once: a way is known by a small state, which each
leaf changes. So "may a NOT be first?" and "may SKIP TO v go nowhere?" are answered for all possible
matches, before there is any. tests/testing/test_validation.py has a table of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import permutations
from typing import TypeVar

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
    leaves,
)

S = TypeVar("S")
Leaf = RowPattern | NotPattern | StartAnchor | EndAnchor
Change = Callable[[Leaf, S], S]


def outcomes(pattern: Pattern, states: frozenset[S], change: Change[S]) -> frozenset[S]:
    """The states in which ways through the pattern end that begin in these."""
    if isinstance(pattern, SequencePattern):
        return _in_turn(pattern.parts, states, change)
    if isinstance(pattern, ChoicePattern):
        return _any(outcomes(part, states, change) for part in pattern.parts)
    if isinstance(pattern, PermutePattern):
        return _any(_in_turn(order, states, change) for order in permutations(pattern.parts))
    if isinstance(pattern, RepeatPattern):
        return _repeated(pattern, states, change)
    return frozenset(change(pattern, state) for state in states)


def _in_turn(parts: Iterable[Pattern], states: frozenset[S], change: Change[S]) -> frozenset[S]:
    for part in parts:
        states = outcomes(part, states, change)
    return states


def _any(found: Iterable[frozenset[S]]) -> frozenset[S]:
    return frozenset(state for states in found for state in states)


def _repeated(pattern: RepeatPattern, states: frozenset[S], change: Change[S]) -> frozenset[S]:
    found: frozenset[S] = frozenset()
    count = 0
    while True:
        if count >= pattern.low and states <= found:
            return found  # what did not lead on before will not do so now
        found |= states if count >= pattern.low else frozenset()
        if count == pattern.high:
            return found
        states, count = outcomes(pattern.part, states, change), count + 1


def refuse_negations(pattern: Pattern, *, within: bool) -> None:
    """NOT stands after a row, alone, in no PERMUTE; at the end it requires WITHIN."""
    _refuse_permuted(pattern)
    outcomes(pattern, frozenset({"start"}), _after)
    last = _last_not(pattern, more=False)
    if last and not within:
        raise BadDefinition(
            f"NOT {last} at the end of the pattern requires WITHIN",
            hint="add how long the row must be absent: PATTERN (…) WITHIN INTERVAL 1 MINUTE.",
        )


def _refuse_permuted(pattern: Pattern) -> None:
    if isinstance(pattern, PermutePattern) and any(
        isinstance(leaf, NotPattern) for leaf in leaves(pattern)
    ):
        raise BadDefinition("NOT is not allowed inside PERMUTE")
    for part in _parts(pattern):
        _refuse_permuted(part)


def _parts(pattern: Pattern) -> tuple[Pattern, ...]:
    if isinstance(pattern, RepeatPattern):
        return (pattern.part,)
    return (
        pattern.parts
        if isinstance(pattern, SequencePattern | ChoicePattern | PermutePattern)
        else ()
    )


def _after(leaf: Leaf, before: str) -> str:
    if isinstance(leaf, RowPattern):
        return "row"
    if not isinstance(leaf, NotPattern):
        return before
    if before == "start":
        raise BadDefinition(f"NOT {leaf.variable} is not allowed before the first row of a match")
    if before == "not":
        raise BadDefinition(f"NOT {leaf.variable} is not allowed next to another NOT")
    return "not"


def _last_not(pattern: Pattern, *, more: bool) -> str | None:
    """The variable of a NOT after which nothing can be taken, if there is one."""
    if isinstance(pattern, NotPattern):
        return None if more else pattern.variable
    if isinstance(pattern, RepeatPattern):
        return _last_not(pattern.part, more=more or pattern.high is None)
    parts = _parts(pattern)
    for number, part in enumerate(parts):
        later = parts[number + 1 :] if isinstance(pattern, SequencePattern) else ()
        found = _last_not(part, more=more or any(map(takes, later)))
        if found:
            return found
    return None


def takes(pattern: Pattern) -> bool:
    """Whether there is a row that the pattern could take."""
    return any(isinstance(leaf, RowPattern) for leaf in leaves(pattern))


def refuse_skip(pattern: Pattern, target: str, members: Collection[str], *, first: bool) -> None:
    """SKIP TO goes to a row that is always there and is never the match's first."""

    def change(leaf: Leaf, state: str) -> str:
        if not isinstance(leaf, RowPattern):
            return state
        row = "first" if state == "empty" else "later"
        if leaf.variable not in members or (first and state in {"first", "later"}):
            return "none" if state == "empty" else state
        return row

    found = outcomes(pattern, frozenset({"empty"}), change)
    if "none" in found:
        raise BadDefinition(f"SKIP TO {target}: a match may have no row of {target}")
    if "first" in found:
        raise BadDefinition(f"SKIP TO {target} could skip to the first row of the match forever")
