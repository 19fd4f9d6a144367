"""Which rows may be passed over is written into the program, so that the search needs no modes.

Where a row may be passed over stands a `Split` between an instruction and a `Pass` that comes back
to it. STRICT has it at NOT only. Otherwise it is before each step after a match's first row, with
what must not be passed over: under SKIP TILL NEXT, rows that a step can take which could come next
where the pattern stands; and rows of the variable of a NOT on the way there.
tests/pattern/test_random_patterns.py checks it against an enumeration of all ways.
"""

from __future__ import annotations

from typing import NamedTuple

from headrace.core.pattern import Node, Selection
from headrace.pattern.instructions import (
    Absent,
    Accept,
    First,
    Instruction,
    Last,
    Pass,
    Program,
    Rest,
    Split,
    Take,
)
from headrace.pattern.program import INSTRUCTIONS_MAX, compiled, too_large


def selecting(node: Node, selection: Selection) -> Program:
    """Compile a pattern to a program of all instructions but `Absent`."""
    program = compiled(node, skips=selection is not Selection.STRICT)
    return _Selecting(program, selection).written()


class _Stand(NamedTuple):
    """An instruction, with the one after the last row taken, as far as it matters (None: rows are
    not passed over here), and the variable of a NOT between the two.
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
        while isinstance(step, Absent) and self.selection is not Selection.STRICT:
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
            case Last(then):
                return self.passing(stand, Last(self.on(stand, then)))
            case Split(preferred, other):
                return Split(self.on(stand, preferred), self.on(stand, other))
            case Absent(name, then):
                here = self.places[stand]
                return Split(self.on(stand, then), self.write(Pass((name,), here)))
            case Rest(names, then):
                return Rest(self.not_passed(stand, *names), self.on(stand, then))
            case First(then):
                return First(self.on(stand, then))
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
        over = Pass(self.not_passed(stand, *absent), self.places[stand])
        return Split(self.write(step), self.write(over))

    def not_passed(self, stand: _Stand, *names: str) -> tuple[str, ...]:
        if self.selection is Selection.NEXT and stand.since is not None:
            return tuple(sorted(self.program.next_takers(stand.since).union(names)))
        return names
