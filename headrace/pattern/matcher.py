"""A pattern, ready to be searched for in the rows of any number of keys.

    matcher = Matcher(pattern)
    search = matcher.begin()            # or matcher.resume(state)
    search.take(rows)                   # ripe rows of one key, in order
    search.matches(mark_us, ended)      # what is decided now
    search.state()

However the rows of a key are cut into such rounds, the same comes out in the end.
tests/pattern/test_cuts.py checks this.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any

from headrace.core.pattern import (
    Expression,
    MatchNumber,
    Pattern,
    RowsPerMatch,
    Selection,
    Value,
    variables,
)
from headrace.pattern.code import Code
from headrace.pattern.evaluate import Closure, ExpressionCompiler, leaves
from headrace.pattern.instructions import AssertFirst
from headrace.pattern.output import MatchOutput
from headrace.pattern.reach import reach
from headrace.pattern.row_masks import VariableCondition, masks_of
from headrace.pattern.search import Search, restored
from headrace.pattern.selection import compile_selection
from headrace.pattern.trail import Row, Trail, TrailSlots


class Matcher:
    """Compiled once; it belongs to one thread, as its searches share its trails."""

    def __init__(self, pattern: Pattern) -> None:
        names = sorted(variables(pattern.node))
        program = compile_selection(pattern.node, pattern.selection)
        self.columns = {column: i for i, column in enumerate(pattern.columns)}
        self.needs = TrailSlots(dict(pattern.subsets))
        self.always = 1  # bit 0, and the variables that take any row
        self.tests: list[VariableCondition] = []
        bits: dict[str, int] = {}
        later: dict[str, Closure] = {}
        self.free = True  # no condition depends on the way to the row
        defined = dict(pattern.conditions)
        for i, name in enumerate(names):
            self._add(name, 2 << i, defined.get(name), bits, later)
        every = pattern.selection is Selection.ANY
        self.code = Code(program, bits, later, memoises=self.free, every=every)
        self.trail = Trail(self.needs, names, self.columns)
        self.output = MatchOutput(pattern, self.code)
        self.within_us = pattern.within_us
        # Where no condition depends on the way, a way that failed is not tried again.
        self.steps_max = math.inf if self.free or pattern.steps_max is None else pattern.steps_max
        self.unmatched = pattern.rows is RowsPerMatch.UNMATCHED
        self.reach = reach(pattern, program)
        self.anchored = any(isinstance(step, AssertFirst) for step in program.instructions)
        self.skip_to = pattern.skip.to
        target = pattern.skip.name
        self.skip_names = frozenset(dict(pattern.subsets).get(target or "", (target,)))
        self.numbers = _asks_number(pattern)

    def _add(
        self,
        name: str,
        bit: int,
        condition: Expression | None,
        bits: dict[str, int],
        later: dict[str, Closure],
    ) -> None:
        """A variable gets a bit if its condition can be known as soon as the row is there."""
        if condition is None:
            self.always |= bit
            bits[name] = bit
            return
        scope = ExpressionCompiler(self.columns, self.needs, name)
        of_row = scope.of_row(condition)
        self.free &= of_row
        if of_row and not _looks_ahead(condition):
            bits[name] = bit
            self.tests.append(VariableCondition(bit, scope.closure(condition), condition))
        else:
            later[name] = scope.closure(condition)

    def begin(self) -> Search:
        """The search of a new key."""
        return Search(self)

    def resume(self, state: Any, masks: Sequence[int] | None = None) -> Search:
        """The search whose state this is; None: a new one. `masks` are those of its rows."""
        return Search(self, state, masks)

    def rows_in(self, state: Any) -> list[Row]:
        """The rows that a state has."""
        return [] if state is None else [restored(row) for row in state[0]]

    def masks(self, rows: Sequence[Row], lowers: Sequence[int] = (0,)) -> list[int]:
        """For each row, the variables that can take it and have bits. The rows are of several keys,
        of which each begins at one of `lowers`.
        """
        if not rows:
            return []
        return masks_of(rows, lowers, self.always, self.tests, self.columns, self.trail)


def _looks_ahead(condition: Expression) -> bool:
    return any(isinstance(leaf, Value) and leaf.place.shift > 0 for leaf in leaves(condition))


def _asks_number(pattern: Pattern) -> bool:
    expressions = [expression for _, expression in (*pattern.conditions, *pattern.measures)]
    asked = chain.from_iterable(map(leaves, expressions))
    return any(isinstance(leaf, MatchNumber) for leaf in asked)
