"""A program as the search runs it: lists by instruction, and sets of variables as bits.

A variable whose condition is of the row alone has a bit; each row has a mask of the bits of the
variables that can take it, and bit 0. Other conditions are asked when the search comes to them.
`needs` and `blocks` say what a row's mask must have, and must not have, for an instruction to lead
on from there; bit 0 says that nothing is known. tests/pattern/test_matcher.py checks it all.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_

from headrace.pattern.evaluate import Closure
from headrace.pattern.instructions import (
    Accept,
    AssertFirst,
    AssertLast,
    Fork,
    Instruction,
    Program,
    SkipRest,
    SkipRow,
    Take,
    named,
)
from headrace.pattern.trail import Trail

TAKE, FORK, SKIP_ROW, ACCEPT, SKIP_REST, ASSERT_LAST, ASSERT_FIRST = range(7)
_OPS = {
    Take: TAKE,
    Fork: FORK,
    SkipRow: SKIP_ROW,
    Accept: ACCEPT,
    SkipRest: SKIP_REST,
    AssertLast: ASSERT_LAST,
    AssertFirst: ASSERT_FIRST,
}


class Code:
    """`bits` are of the variables that have one, `conditions` of those that have none."""

    def __init__(
        self,
        program: Program,
        bits: Mapping[str, int],
        conditions: Mapping[str, Closure],
        *,
        memoises: bool,
        every: bool,
    ) -> None:
        steps = program.instructions
        self.entry, self.memoises, self.every = program.entry, memoises, every
        self.tracks = bool(conditions)
        self.ops = [_OPS[type(step)] for step in steps]
        self.nexts = [_next(step) for step in steps]
        self.others = [step.other if isinstance(step, Fork) else 0 for step in steps]
        self.names = [step.name if isinstance(step, Take) else "" for step in steps]
        self.excluded = [isinstance(step, Take) and step.excluded for step in steps]
        self.bits = [sum({bits.get(name, 0) for name in named(step)}) for step in steps]
        self.conditions = [
            [(name, conditions[name]) for name in named(step) if name in conditions]
            for step in steps
        ]
        self.blocks = [
            self.bits[i] if isinstance(step, SkipRow) else 0 for i, step in enumerate(steps)
        ]
        targets = {i for step in steps if isinstance(step, Fork) for i in step}
        self.needs = [self._need(program, i) if i in targets else 1 for i in range(len(steps))]
        self.starts = self._need(program, program.entry)
        self.seconds = self._seconds(program)

    def _need(self, program: Program, at: int) -> int:
        """Bits of which a row must have one, or nothing can follow here."""
        need = 0
        for i in program.before_taking(at):
            if self.ops[i] == TAKE and self.bits[i]:
                need |= self.bits[i]
            elif self.ops[i] != FORK:
                return 1
        return need

    def _seconds(self, program: Program) -> int:
        """Bits of which the row after a match's first must have one; bit 0 if more may follow."""
        if self.starts == 1 or self.tracks:
            return 1  # steps are counted, so none may be left out
        needs = [
            self._need(program, self.nexts[i])
            for i in program.before_taking(program.entry)
            if self.ops[i] == TAKE
        ]
        return 1 if 1 in needs else reduce(or_, needs, 0)

    def holds(self, trail: Trail, pc: int, at: int) -> bool:
        """Is the row of one of the variables that have no bit?"""
        depth = len(trail.path)
        for name, condition in self.conditions[pc]:
            trail.push(at, name)
            answer = condition(trail)
            trail.cut(depth)
            if answer:
                return True
        return False

    def may_pass(self, trail: Trail, pc: int, at: int, mask: int) -> bool:
        return not mask & self.bits[pc] and not (self.conditions[pc] and self.holds(trail, pc, at))

    def identity(self, path: list[int], takes: list[int]) -> object:
        """Matches are the same if the same rows have the same variables."""
        return tuple(path), tuple(self.names[i] for i in takes)


def _next(step: Instruction) -> int:
    if isinstance(step, Fork):
        return step.preferred
    return 0 if isinstance(step, Accept) else step.next
