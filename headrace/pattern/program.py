"""A pattern is compiled to a program once.

Each part is compiled towards what follows it, so there are no jumps, and no counters: repetitions
are written out, and a part that may take no row has two things that may follow it, one for when it
took none. So no loop goes round without a row, and a search need not remember where a loop began.
tests/pattern/test_program.py checks this.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import permutations

from headrace.core import pattern as nouns
from headrace.core.errors import Unsupported
from headrace.pattern.instructions import (
    Accept,
    AssertFirst,
    AssertLast,
    Fork,
    Instruction,
    Program,
    SkipRest,
    SkipRows,
    Take,
)

INSTRUCTIONS_MAX = 20_000
PERMUTED_MAX = 8


def compile_pattern(node: nouns.Node, *, skips: bool = False) -> Program:
    """Compile a pattern; `skips`: rows may be skipped, as under SKIP TILL NEXT and ANY.

    >>> program = compile_pattern(nouns.Repeat(nouns.Variable("A"), 1, None))
    >>> program.always_takes({"A"}), program.may_be_only_first({"A"})
    (True, True)
    """
    writer = _Writer(skips)
    accept = writer.write(Accept())
    entry = writer.node(node, accept, accept)
    return _with_rests(Program(tuple(writer.steps), entry))


def _with_rests(program: Program) -> Program:
    """Where nothing can be taken after a NOT, it is about all rows that are left."""

    def decided(step: Instruction) -> Instruction:
        if isinstance(step, SkipRows) and not program.next_takers(step.next):
            return SkipRest((step.name,), step.next)
        return step

    return replace(program, instructions=tuple(map(decided, program.instructions)))


def may_be_empty(node: nouns.Node) -> bool:
    """May the part end without having taken a row?"""
    match node:
        case nouns.Variable():
            return False
        case nouns.Sequence(parts) | nouns.Permute(parts):
            return all(map(may_be_empty, parts))
        case nouns.Choice(parts):
            return any(map(may_be_empty, parts))
        case nouns.Repeat(part, least):
            return least == 0 or may_be_empty(part)
        case nouns.Exclude(part):
            return may_be_empty(part)
        case _:
            return True


def one_way(node: nouns.Node) -> bool:
    """Is there but one way to go through the part from a given row?"""
    match node:
        case nouns.Variable():
            return True
        case nouns.Sequence(parts):
            return bool(parts) and all(map(one_way, parts))
        case nouns.Exclude(part):
            return one_way(part)
        case _:
            return False


class _Writer:
    """Writes parts from the end to the beginning: each is given what follows it.

    `none` follows if no row was taken since the innermost iteration began, `some` follows
    otherwise. Outside of iterations, the two are the same.
    """

    def __init__(self, skips: bool) -> None:
        self.steps: list[Instruction] = []
        self.skips = skips
        self.excluded = False

    def write(self, step: Instruction) -> int:
        if len(self.steps) >= INSTRUCTIONS_MAX:
            raise too_large()
        self.steps.append(step)
        return len(self.steps) - 1

    def node(self, node: nouns.Node, none: int, some: int) -> int:
        """Write the part; its first instruction is given back."""
        match node:
            case nouns.Variable(name):
                return self.write(Take(name, some, self.excluded))
            case nouns.Sequence(parts):
                return self.sequence(parts, none, some)
            case nouns.Choice(parts):
                return self.choice([self.node(part, none, some) for part in parts])
            case nouns.Repeat():
                return self.repeat(node, none, some)
            case nouns.Permute(parts):
                return self.permute(parts, none, some)
            case nouns.Exclude(part):
                return self.exclude(part, none, some)
            case nouns.Absent(name):
                return self.write(SkipRows(name, none))
            case nouns.Start():
                return self.write(AssertFirst(none))
            case nouns.End():
                return self.write(AssertLast(none))

    def pair(self, node: nouns.Node, none: int, some: int) -> tuple[int, int]:
        """Write the part for both: when no row was taken before it, and when some was."""
        entry = self.node(node, none, some)
        return entry, entry if none == some else self.node(node, some, some)

    def sequence(self, parts: Iterable[nouns.Node], none: int, some: int) -> int:
        for part in reversed(tuple(parts)):
            none, some = self.pair(part, none, some)
        return none

    def choice(self, entries: list[int]) -> int:
        entry = entries[-1]
        for earlier in reversed(entries[:-1]):
            entry = self.write(Fork(earlier, entry))
        return entry

    def exclude(self, part: nouns.Node, none: int, some: int) -> int:
        outer, self.excluded = self.excluded, True
        entry = self.node(part, none, some)
        self.excluded = outer
        return entry

    def repeat(self, node: nouns.Repeat, none: int, some: int) -> int:
        if node.most is None:
            none, some = self.loop(node, none, some)
        else:
            none, some = self.options(node, node.most - node.least, none, some)
        for _ in range(node.least):
            none, some = self.pair(node.part, none, some)
        return none

    def loop(self, node: nouns.Repeat, none: int, some: int) -> tuple[int, int]:
        split = self.write(Fork(some, some))  # its place is needed before the iteration is there
        self.steps[split] = self.option(node, some, split)
        return split if none == some else self.write(self.option(node, none, split)), split

    def options(self, node: nouns.Repeat, count: int, none: int, some: int) -> tuple[int, int]:
        none_then, some_then = none, some
        for _ in range(count):
            first = self.option(node, none, some_then)
            again = first if none == some else self.option(node, some, some_then)
            some_then = self.write(again)
            none_then = some_then if none == some else self.write(first)
        return none_then, some_then

    def option(self, node: nouns.Repeat, leave: int, again: int) -> Fork:
        """One more iteration, or not: one that takes no row leaves the repetition."""
        empty = leave if may_be_empty(node.part) else again
        iteration = self.node(node.part, empty, again)
        return Fork(iteration, leave) if node.greedy else Fork(leave, iteration)

    def permute(self, parts: tuple[nouns.Node, ...], none: int, some: int) -> int:
        if len(parts) > PERMUTED_MAX:
            raise Unsupported(
                f"PERMUTE has {len(parts)} elements, more than the maximum of {PERMUTED_MAX}",
                hint="use fewer elements, or write out the permutations that are needed.",
            )
        if parts and all(map(one_way, parts)) and not self.skips:
            return self.orders(parts, frozenset(range(len(parts))), {frozenset(): some})
        orders = permutations(parts)
        return self.choice([self.sequence(order, none, some) for order in orders])

    def orders(
        self,
        parts: tuple[nouns.Node, ...],
        left: frozenset[int],
        written: dict[frozenset[int], int],
    ) -> int:
        """The parts that are left, in any order; where there is but one way through each, the
        orders may share what they have in common. Where rows may be skipped they do not: what could
        come next is a matter of each order.
        """
        if left not in written:
            written[left] = self.choice(
                [
                    self.node(parts[i], then, then)
                    for i in sorted(left)
                    for then in [self.orders(parts, left - {i}, written)]
                ]
            )
        return written[left]


def too_large() -> Unsupported:
    return Unsupported(
        f"the pattern compiles to more than {INSTRUCTIONS_MAX} instructions",
        hint="use smaller bounds in { }, or fewer elements in PERMUTE.",
    )
