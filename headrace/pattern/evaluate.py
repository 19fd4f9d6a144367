"""Conditions and measures as Python closures, compiled once.

A closure is called with a trail and gives the expression's value as of the trail's last row. In a
condition of v, the last row of v, of the universal variable and of every subset with v is the row
under test (`trail.at`): a condition that asks for no other row of the match is *of the row*, and
holds or not whatever was taken before. tests/pattern/test_evaluate.py checks the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from headrace.core.errors import Unsupported
from headrace.core.pattern import (
    Classifier,
    Expression,
    FunctionCall,
    Literal,
    MatchAggregate,
    MatchId,
    MatchNumber,
    RowNavigation,
    Value,
)
from headrace.pattern.functions import FUNCTIONS as FUNCTIONS
from headrace.pattern.trail import FOLDS, Trail, TrailSlots, fold_of

Closure = Callable[[Trail], Any]


def leaves(expression: Expression) -> Iterator[Expression]:
    """Everything in the expression that is not a call."""
    if isinstance(expression, FunctionCall):
        for argument in expression.arguments:
            yield from leaves(argument)
    else:
        yield expression


class ExpressionCompiler:
    """Compiles expressions for one kind of trail: conditions of `variable`, or measures (None)."""

    def __init__(
        self, columns: dict[str, int], needs: TrailSlots, variable: str | None = None
    ) -> None:
        self.columns, self.needs, self.variable = columns, needs, variable
        subsets = [name for name, those in needs.subsets.items() if variable in those]
        self.own = {None, variable, *subsets} if variable is not None else set()

    def closure(self, expression: Expression) -> Closure:
        """The whole expression. It reads all rows that NEXT names first, so that whether it waits
        does not depend on the order of its parts.
        """
        inner = self.part(expression)
        values = [leaf for leaf in leaves(expression) if isinstance(leaf, Value)]
        ahead = [self.located(leaf.place) for leaf in values if leaf.place.shift > 0]
        if not ahead:
            return inner

        def asking(trail: Trail) -> Any:
            for located in ahead:
                located(trail)
            return inner(trail)

        return asking

    def part(self, expression: Expression) -> Closure:
        match expression:
            case Literal(value):
                return lambda trail: value
            case FunctionCall(function, arguments):
                return self.call(function, arguments)
            case Value(column, place):
                return self.value(self.columns[column], place)
            case Classifier(place):
                return self.classifier(place)
            case MatchAggregate():
                return self.aggregate(expression)
            case MatchNumber():
                return lambda trail: trail.number
            case MatchId():
                return lambda trail: trail.identity
        raise TypeError(expression)

    def of_row(self, expression: Expression) -> bool:
        """Does the expression depend only on the row under test and its neighbours?"""
        return all(map(self._leaf_of_row, leaves(expression)))

    def _leaf_of_row(self, leaf: Expression) -> bool:
        if isinstance(leaf, Value):
            return self.under_test(leaf.place)
        if isinstance(leaf, Classifier):
            return self.under_test(leaf.place) and leaf.place.shift == 0
        return isinstance(leaf, Literal)

    def under_test(self, place: RowNavigation) -> bool:
        return place.name in self.own and not place.first and place.offset == 0

    def call(self, function: str, arguments: tuple[Expression, ...]) -> Closure:
        if function not in FUNCTIONS:
            raise Unsupported(
                f"the function {function!r} is not supported in a pattern",
                hint=f"available functions: {', '.join(sorted(FUNCTIONS))}.",
            )
        build, least, most = FUNCTIONS[function]
        if len(arguments) < least or (most is not None and len(arguments) > most):
            raise Unsupported(f"{function!r} expects {_arity(least, most)}, got {len(arguments)}")
        return build(*map(self.part, arguments))

    def value(self, column: int, place: RowNavigation) -> Closure:
        if self.under_test(place) and place.shift == 0:
            return lambda trail: trail.rows[trail.at][2][column]
        if self.under_test(place) and place.shift < 0:
            return _before(column, -place.shift)
        located = self.located(place)

        def value(trail: Trail) -> Any:
            at = located(trail)
            return None if at is None else trail.rows[at][2][column]

        return value

    def located(self, place: RowNavigation) -> Callable[[Trail], int | None]:
        """The index in the rows of a navigation."""
        taken, shift = self.taken(place), place.shift
        if shift == 0:
            return taken

        def located(trail: Trail) -> int | None:
            at = taken(trail)
            return None if at is None else trail.shifted(at, shift)

        return located

    def taken(self, place: RowNavigation) -> Callable[[Trail], int | None]:
        """The row of the match from which a navigation counts."""
        if self.under_test(place):
            return lambda trail: trail.at
        rows, offset = self.rows(place), place.offset
        index = offset if place.first else -1 - offset

        def taken(trail: Trail) -> int | None:
            those = rows(trail)
            return those[index] if len(those) > offset else None

        return taken

    def rows(self, place: RowNavigation) -> Callable[[Trail], list[int]]:
        if place.name is None:
            return _whole_path if place.final else _path
        slot = self.needs.list_of(place.name)
        if place.final:
            return lambda trail: trail.whole.lists[slot]
        return lambda trail: trail.lists[slot]

    def classifier(self, place: RowNavigation) -> Closure:
        """A row that no variable took has none. All rows of the match can be seen, also those after
        the current one, as NEXT may ask for them.
        """
        if self.under_test(place) and place.shift == 0:
            return lambda trail: self.variable
        taken, shift = self.taken(place), place.shift

        def classifier(trail: Trail) -> str | None:
            at = taken(trail)
            return None if at is None else trail.whole.label_at(at + shift)

        return classifier

    def aggregate(self, aggregate: MatchAggregate) -> Closure:
        if aggregate.function not in FOLDS:
            raise Unsupported(
                f"the aggregate {aggregate.function!r} is not supported in a pattern",
                hint=f"available aggregates: {', '.join(sorted(FOLDS))}.",
            )
        slot, finish = self.needs.aggregate(aggregate), fold_of(aggregate).finish
        if aggregate.final:
            return lambda trail: finish(trail.whole.stacks[slot][-1])
        return lambda trail: finish(trail.stacks[slot][-1])


def _arity(least: int, most: int | None) -> str:
    """
    >>> _arity(1, 1), _arity(2, None), _arity(1, 2)
    ('1 argument', 'at least 2 arguments', '1 to 2 arguments')
    """
    if most is None:
        return f"at least {least} argument{'s' if least != 1 else ''}"
    counts = str(least) if most == least else f"{least} to {most}"
    return f"{counts} argument{'s' if most != 1 else ''}"


def _before(column: int, count: int) -> Closure:
    def before(trail: Trail) -> Any:
        at = trail.at - count
        return trail.rows[at][2][column] if at >= 0 else None

    return before


def _path(trail: Trail) -> list[int]:
    return trail.path


def _whole_path(trail: Trail) -> list[int]:
    return trail.whole.path
