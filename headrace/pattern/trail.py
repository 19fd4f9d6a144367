"""The rows that a match has taken so far, indexed for expressions.

A trail is a stack: the search pushes the row under test, asks a condition, and pops the row again
if it goes back. For each variable or subset that is asked for it has the rows taken, and for each
aggregate its value after each of those rows, so that to push, to pop and to ask take the same time
however long the match is. tests/pattern/test_evaluate.py checks that a pop undoes a push.
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from headrace.core.order import below
from headrace.core.pattern import CLASSIFIED, MatchAggregate

Row = tuple[int, Any, tuple[Any, ...]]
Step = Callable[[Any, Any], Any]
_LABEL = -1  # stands for the variable's name instead of a column


class RowPending(Exception):
    """An expression needs a row that may still arrive."""


class AggregateFold(NamedTuple):
    """An aggregate as a fold over rows."""

    zero: Any
    step: Step
    finish: Callable[[Any], Any]


class TrailSlots:
    """The slots of one trail: the row lists and aggregates that its expressions use, assigned while
    they are compiled.
    """

    def __init__(self, subsets: dict[str, tuple[str, ...]]) -> None:
        self.subsets = subsets
        self.lists: dict[str, int] = {}
        self.aggregates: dict[MatchAggregate, int] = {}

    def list_of(self, name: str) -> int:
        return self.lists.setdefault(name, len(self.lists))

    def aggregate(self, aggregate: MatchAggregate) -> int:
        return self.aggregates.setdefault(aggregate, len(self.aggregates))

    def members(self, name: str | None, variables: Iterable[str]) -> tuple[str, ...]:
        return tuple(variables) if name is None else self.subsets.get(name, (name,))


class Trail:
    """Rows taken (`path`: their places in `rows`) by variables (`labels`)."""

    def __init__(
        self, needs: TrailSlots, variables: Iterable[str], columns: dict[str, int]
    ) -> None:
        variables, columns = tuple(variables), {**columns, CLASSIFIED: _LABEL}
        self.rows: list[Row] = []
        self.ended = False
        self.number = 0  # of the match
        self.identity: str | None = None  # of the match
        self.at = -1  # the row under test
        self.path: list[int] = []
        self.labels: list[str] = []
        self.whole = self
        self.lists: list[list[int]] = [[] for _ in needs.lists]
        self.stacks = [[fold_of(each).zero] for each in needs.aggregates]
        self._lists: dict[str, list[list[int]]] = {v: [] for v in variables}
        self._stacks: dict[str, list[tuple[list[Any], Step, int | None]]]
        self._stacks = {v: [] for v in variables}
        for name, slot in needs.lists.items():
            for member in needs.members(name, variables):
                self._lists.setdefault(member, []).append(self.lists[slot])
        for each, slot in needs.aggregates.items():
            fed = self.stacks[slot], fold_of(each).step, columns.get(each.column or "")
            for member in needs.members(each.name, variables):
                self._stacks.setdefault(member, []).append(fed)

    def extend(self, path: list[int], labels: list[str]) -> None:
        """Push many rows."""
        self.path += path
        self.labels += labels
        rows, lists, stacks = self.rows, self._lists, self._stacks
        for at, name in zip(path, labels, strict=True):
            for taken in lists[name]:
                taken.append(at)
            for stack, step, column in stacks[name]:
                value = rows[at][2][column] if column is not None and column >= 0 else name
                stack.append(step(stack[-1], value))

    def push(self, at: int, name: str) -> None:
        self.at = at
        self.extend([at], [name])

    def cut(self, depth: int) -> None:
        """Go back to the first `depth` rows."""
        while len(self.path) > depth:
            self.path.pop()
            name = self.labels.pop()
            for taken in self._lists[name]:
                taken.pop()
            for stack, _, _ in self._stacks[name]:
                stack.pop()

    def begin(self, rows: list[Row], number: int, ended: bool) -> None:
        self.path.clear()
        self.labels.clear()
        for taken in self.lists:
            taken.clear()
        for stack in self.stacks:
            del stack[1:]
        self.rows, self.number, self.ended = rows, number, ended

    def shifted(self, at: int, shift: int) -> int | None:
        """The row `shift` rows on in the key, if there is one; it is known or waited for."""
        at += shift
        if at >= len(self.rows) and not self.ended:
            raise RowPending
        return at if 0 <= at < len(self.rows) else None

    def label_at(self, at: int) -> str | None:
        i = bisect_left(self.path, at)
        return self.labels[i] if i < len(self.path) and self.path[i] == at else None


def match_id(places: list[Any], labels: list[str]) -> str:
    """The id of a match: a hash of its rows and their variables.

    >>> match_id([[0, 7], [0, 9]], ["A", "B"])
    '54f10ed13aa4a1b697382fc908c2beff'
    """
    encoded = msgspec.msgpack.encode((places, labels))
    return hashlib.blake2b(encoded, digest_size=16).hexdigest()


def fold_of(aggregate: MatchAggregate) -> AggregateFold:
    """The fold of an aggregate, which ignores NULL."""
    function, column = aggregate.function, aggregate.column
    if function == "count" and column is None:
        return AggregateFold(0, lambda n, _: n + 1, _same)
    if aggregate.distinct:
        zero, step, finish = FOLDS[function]
        return AggregateFold(
            None, _collected, lambda kept: finish(_folded(_distinct(kept), zero, step))
        )
    zero, step, finish = FOLDS[function]
    return AggregateFold(zero, lambda state, x: state if x is None else step(state, x), finish)


def _same(state: Any) -> Any:
    return state


def _collected(kept: Any, x: Any) -> Any:
    return kept if x is None else (kept, x)


def _listed(kept: Any) -> list[Any]:
    values = []
    while kept is not None:
        kept, x = kept
        values.append(x)
    return values[::-1]


def _distinct(kept: Any) -> list[Any]:
    # All NaN are one value, and the same object is one key.
    return list(dict.fromkeys(math.nan if x != x else x for x in _listed(kept)))


def _folded(values: list[Any], state: Any, step: Step) -> Any:
    for x in values:
        state = step(state, x)
    return state


def _first_or(step: Step) -> Step:
    return lambda state, x: x if state is None else step(state, x)


# Lists share their beginnings, as each row's state is kept: a state is (what was before, value).
FOLDS: dict[str, AggregateFold] = {
    "count": AggregateFold(0, lambda n, _: n + 1, _same),
    "sum": AggregateFold(None, _first_or(lambda s, x: s + x), _same),
    "min": AggregateFold(None, _first_or(lambda s, x: x if below(x, s) else s), _same),
    "max": AggregateFold(None, _first_or(lambda s, x: x if below(s, x) else s), _same),
    "avg": AggregateFold(
        (0, 0), lambda s, x: (s[0] + x, s[1] + 1), lambda s: s[0] / s[1] if s[1] else None
    ),
    "collect_list": AggregateFold(None, _collected, _listed),
}
