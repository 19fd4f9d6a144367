"""Instructions of a pattern's program, and the properties that follow from it alone.

A program has the ways of a pattern in its order of preference: a backtracking search that runs it,
and tries `preferred` before `other`, reaches `Accept` first on the most preferred match. The
properties hold for all ways of a program, whatever the conditions are.
tests/pattern/test_program.py checks this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple


class Take(NamedTuple):
    """The current row matches the variable; continue with the next row."""

    name: str
    next: int
    excluded: bool = False


class Fork(NamedTuple):
    preferred: int
    other: int


class SkipRows(NamedTuple):
    """Any rows that do not match the variable may be skipped here."""

    name: str
    next: int


class SkipRest(NamedTuple):
    """All rows that are left WITHIN match none of the names."""

    names: tuple[str, ...]
    next: int


class SkipRow(NamedTuple):
    """The current row matches none of the names, and is skipped."""

    names: tuple[str, ...]
    next: int


class AssertFirst(NamedTuple):
    """The current row is the first of the key."""

    next: int


class AssertLast(NamedTuple):
    """The row before is the last of the key."""

    next: int


class Accept(NamedTuple):
    pass


Instruction = Take | Fork | SkipRows | SkipRest | SkipRow | AssertFirst | AssertLast | Accept


@dataclass(frozen=True, slots=True)
class Program:
    """Instructions, and the one to begin with.

    >>> program = Program((Accept(), Take("B", 0), Take("A", 1)), entry=2)
    >>> program.always_takes({"B"}), program.may_be_only_first({"A"})
    (True, True)
    """

    instructions: tuple[Instruction, ...]
    entry: int

    def first_takers(self) -> frozenset[str]:
        """The variables that may take a match's first row."""
        steps = [self.instructions[i] for i in self.before_taking(self.entry)]
        return frozenset(step.name for step in steps if isinstance(step, Take))

    def next_takers(self, at: int) -> frozenset[str]:
        """The variables that may take the next row, when one was taken before."""
        reached = self._reached(
            [at], lambda step: not isinstance(step, Take | AssertFirst | AssertLast)
        )
        steps = [self.instructions[i] for i in reached]
        return frozenset(step.name for step in steps if isinstance(step, Take))

    def before_taking(self, at: int) -> list[int]:
        """The instructions that can be reached without taking a row, in order of preference."""
        return list(self._reached([at], _takes_none))

    def may_end(self, at: int, avoiding: AbstractSet[str] = frozenset()) -> bool:
        """Is there a way to the end on which none of the variables takes a row?"""
        reached = self._reached(
            [at], lambda step: not isinstance(step, Take) or step.name not in avoiding
        )
        return any(isinstance(self.instructions[i], Accept) for i in reached)

    def always_takes(self, names: AbstractSet[str]) -> bool:
        """Does one of the variables take a row in every match?"""
        return not self.may_end(self.entry, names)

    def may_be_first(self, names: AbstractSet[str]) -> bool:
        """May one of the variables take a match's first row?"""
        return bool(names & self.first_takers())

    def may_be_only_first(self, names: AbstractSet[str]) -> bool:
        """May it be that the variables take a match's first row, and no other?"""
        firsts = [self.instructions[i] for i in self.before_taking(self.entry)]
        takes = [step for step in firsts if isinstance(step, Take) and step.name in names]
        return any(self.may_end(step.next, names) for step in takes)

    def distances(self) -> dict[str, int]:
        """For each variable, the least number of rows that are taken before one of its own."""
        found: dict[str, int] = {}
        at, distance, seen = [self.entry], 0, set[int]()
        while at:
            reached = [i for i in self._reached(at, _takes_none) if i not in seen]
            seen.update(reached)
            steps = [self.instructions[i] for i in reached]
            for step in steps:
                for name in named(step):
                    found.setdefault(name, distance)
            at = [step.next for step in steps if isinstance(step, Take)]
            distance += 1
        return found

    def _reached(self, at: list[int], through: Callable[[Instruction], bool]) -> Iterator[int]:
        seen: set[int] = set()
        waiting = at[::-1]
        while waiting:
            i = waiting.pop()
            if i in seen:
                continue
            seen.add(i)
            yield i
            step = self.instructions[i]
            if through(step):
                waiting.extend(reversed(after(step)))


def _takes_none(step: Instruction) -> bool:
    return not isinstance(step, Take)


def after(step: Instruction) -> tuple[int, ...]:
    if isinstance(step, Fork):
        return (step.preferred, step.other)
    return () if isinstance(step, Accept) else (step.next,)


def named(step: Instruction) -> tuple[str, ...]:
    """The variables whose conditions the instruction evaluates."""
    if isinstance(step, Take | SkipRows):
        return (step.name,)
    return step.names if isinstance(step, SkipRest | SkipRow) else ()
