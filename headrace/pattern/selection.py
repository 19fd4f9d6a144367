"""Compiles which rows may be skipped into the program, so that the search has no modes.

Where a row may be skipped there is a `Fork` between an instruction and a `SkipRow` that comes back
to it. STRICT has it at NOT only. Otherwise it is before each step after a match's first row, with
the rows that must not be skipped: under SKIP TILL NEXT, rows that a step can take which could come
next where the pattern stands; and rows of the variable of a NOT on the way there.
tests/pattern/test_random_patterns.py checks it against an enumeration of all ways.
"""

from __future__ import annotations

from typing import NamedTuple

from headrace.core.pattern import Node, Selection
from headrace.pattern.instructions import (
    Accept,
    AssertFirst,
    AssertLast,
    Fork,
    Instruction,
    Program,
    SkipRest,
    SkipRow,
    SkipRows,
    Take,
)
from headrace.pattern.program import INSTRUCTIONS_MAX, compile_pattern, too_large


def compile_selection(node: Node, selection: Selection) -> Program:
    """Compile a pattern to a program of all instructions but `SkipRows`."""
    program = compile_pattern(node, skips=selection is not Selection.STRICT)
    return _Selecting(program, selection).written()


class _Stand(NamedTuple):
    """An instruction, with the one after the last row taken, as far as it matters (None: rows are
    not skipped here), and the variable of a NOT between the two.
    """

    at: int
    since: int | None = None
    absent: str | None = None


class _Selecting:
    def __init__(self, program: Program, selection: Selection) -> None:
        self.program, self.selection = program, selection
        self.steps: list[Instruction] = []
        self.places: dict[_Stand, int] = {}
        self.waiting: list[_Stand] = []

    def written(self) -> Program:
        entry = self.place(_Stand(self.program.entry))
        while self.waiting:
            stand = self.waiting.pop()
            self.steps[self.places[stand]] = self.step(stand)
        return Program(tuple(self.steps), entry)

    def place(self, stand: _Stand) -> int:
        """Where the instruction for it is, or will be."""
        step = self.program.instructions[stand.at]
        while isinstance(step, SkipRows) and self.selection is not Selection.STRICT:
            stand = stand._replace(at=step.next, absent=step.name)
            step = self.program.instructions[stand.at]
        if stand not in self.places:
            self.places[stand] = self.write(Accept())
            self.waiting.append(stand)
        return self.places[stand]

    def write(self, step: Instruction) -> int:
        if len(self.steps) >= INSTRUCTIONS_MAX:
            raise too_large()
        self.steps.append(step)
        return len(self.steps) - 1

    def step(self, stand: _Stand) -> Instruction:
        match self.program.instructions[stand.at]:
            case Take(name, then, excluded):
                return self.passing(stand, Take(name, self.taken(then), excluded))
            case AssertLast(then):
                return self.passing(stand, AssertLast(self.on(stand, then)))
            case Fork(preferred, other):
                return Fork(self.on(stand, preferred), self.on(stand, other))
            case SkipRows(name, then):
                here = self.places[stand]
                return Fork(self.on(stand, then), self.write(SkipRow((name,), here)))
            case SkipRest(names, then):
                return SkipRest(self.not_passed(stand, *names), self.on(stand, then))
            case AssertFirst(then):
                return AssertFirst(self.on(stand, then))
            case step:
                return step

    def taken(self, then: int) -> int:
        since = {Selection.STRICT: None, Selection.NEXT: then, Selection.ANY: 0}
        return self.place(_Stand(then, since[self.selection]))

    def on(self, stand: _Stand, then: int) -> int:
        return self.place(stand._replace(at=then))

    def passing(self, stand: _Stand, step: Instruction) -> Instruction:
        if stand.since is None:
            return step
        absent = () if stand.absent is None else (stand.absent,)
        over = SkipRow(self.not_passed(stand, *absent), self.places[stand])
        return Fork(self.write(step), self.write(over))

    def not_passed(self, stand: _Stand, *names: str) -> tuple[str, ...]:
        if self.selection is Selection.NEXT and stand.since is not None:
            return tuple(sorted(self.program.next_takers(stand.since).union(names)))
        return names
