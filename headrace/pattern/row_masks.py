"""Masks of rows: a bit for each variable that can take the row, for the rows of many keys at once.

A condition over numbers of a row and of rows before it is computed in columns, with the values that
its closure has; any other condition is asked row by row, by its closure.
tests/pattern/test_row_masks.py compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.core.pattern import Expression, FunctionCall, Literal, Value
from headrace.pattern.evaluate import Closure
from headrace.pattern.trail import Row, Trail

Array = NDArray[Any]
_TYPES: dict[type, Any] = {bool: np.bool_, int: np.int64, float: np.float64}


class NotColumns(Exception):
    """The values of an expression are not of one type that has columns."""


class RowValues(NamedTuple):
    values: Array
    known: Array  # not NULL


class RowColumns:
    """The columns of rows of several keys; the rows of a key begin at each of `lowers`."""

    def __init__(self, rows: Sequence[Row], lowers: Sequence[int]) -> None:
        self.rows, self.lowers = rows, np.array(lowers, np.int64)
        self.cached: dict[int, RowValues] = {}

    def column(self, number: int, back: int) -> RowValues:
        """The values of so many rows before each row, NULL where the key has none."""
        if number not in self.cached:
            self.cached[number] = _column([row[2][number] for row in self.rows])
        values, known = self.cached[number]
        if not back:
            return RowValues(values, known)
        begins = np.repeat(self.lowers, np.diff(self.lowers, append=len(self.rows)))
        at = np.arange(len(self.rows)) - back
        inside = at >= begins
        return RowValues(values[at * inside], known[at * inside] & inside)


def _column(values: list[Any]) -> RowValues:
    kinds = set(map(type, values))
    missing = type(None) in kinds
    found = [_TYPES.get(kind) for kind in kinds - {type(None)}]
    if len(found) > 1 or None in found:
        raise NotColumns
    known = np.array([v is not None for v in values]) if missing else np.ones(len(values), np.bool_)
    if missing:
        values = [0 if value is None else value for value in values]
    return RowValues(np.array(values, found[0] if found else np.bool_), known)


class VariableCondition(NamedTuple):
    """The condition of a variable with a bit: as a closure, and as an expression."""

    bit: int
    closure: Closure
    expression: Expression


def masks_of(
    rows: Sequence[Row],
    lowers: Sequence[int],
    always: int,
    conditions: Sequence[VariableCondition],
    columns: dict[str, int],
    trail: Trail,
) -> list[int]:
    """The mask of each row."""
    table = RowColumns(rows, lowers)
    wide = max([always, *(condition.bit for condition in conditions)]) >= 1 << 62
    masks = np.full(len(rows), always, object if wide else np.int64)
    for condition in conditions:
        holds = _holds(condition, table, columns, trail)
        masks[holds] |= condition.bit
    found: list[int] = masks.tolist()
    return found


def _holds(
    condition: VariableCondition, table: RowColumns, columns: dict[str, int], trail: Trail
) -> Array:
    try:
        with np.errstate(all="ignore"):
            values, known = evaluate(condition.expression, table, columns)
    except NotColumns:
        return _asked(condition.closure, table, trail)
    found: Array = values.astype(np.bool_) & known
    return found


def _asked(closure: Closure, table: RowColumns, trail: Trail) -> Array:
    found = list[bool]()
    uppers = [*table.lowers[1:].tolist(), len(table.rows)]
    for lower, upper in zip(table.lowers.tolist(), uppers, strict=True):
        trail.rows = list(table.rows[lower:upper])
        for at in range(upper - lower):
            trail.at = at
            found.append(bool(closure(trail)))
    return np.array(found, np.bool_)


def evaluate(expression: Expression, table: RowColumns, columns: dict[str, int]) -> RowValues:
    """The values of an expression of the row under test; NotColumns if it has none."""
    match expression:
        case Value(name, place):
            return table.column(columns[name], -place.shift)
        case Literal(value):
            return _constant(value, len(table.rows))
        case FunctionCall(function, arguments) if function in _FUNCTIONS:
            parts = [evaluate(argument, table, columns) for argument in arguments]
            return _FUNCTIONS[function](*parts)
    raise NotColumns


def _constant(value: Any, count: int) -> RowValues:
    if type(value) not in _TYPES:
        raise NotColumns
    return RowValues(np.full(count, value, _TYPES[type(value)]), np.ones(count, np.bool_))


def _comparing(
    compare: Callable[[Array, Array], Array],
) -> Callable[[RowValues, RowValues], RowValues]:
    def compared(x: RowValues, y: RowValues) -> RowValues:
        if x.values.dtype != y.values.dtype:
            raise NotColumns  # Python compares an integer and a double exactly
        return RowValues(compare(x.values, y.values), x.known & y.known)

    return compared


def _computing(
    compute: Callable[[Array, Array], Array],
) -> Callable[[RowValues, RowValues], RowValues]:
    def computed(x: RowValues, y: RowValues) -> RowValues:
        if x.values.dtype != y.values.dtype or x.values.dtype == np.bool_:
            raise NotColumns
        return RowValues(compute(x.values, y.values), x.known & y.known)

    return computed


def _equal(x: Array, y: Array) -> Array:
    found: Array = (x == y) | ((x != x) & (y != y))
    return found


def _below(x: Array, y: Array) -> Array:
    found: Array = (x < y) | ((y != y) & (x == x))
    return found


def _at_most(x: Array, y: Array) -> Array:
    found: Array = (x <= y) | (y != y)
    return found


def _and(*parts: RowValues) -> RowValues:
    true = np.logical_and.reduce([part.values.astype(np.bool_) & part.known for part in parts])
    false = np.logical_or.reduce([~part.values.astype(np.bool_) & part.known for part in parts])
    return RowValues(true, true | false)


def _or(*parts: RowValues) -> RowValues:
    return _not(_and(*map(_not, parts)))


def _not(part: RowValues) -> RowValues:
    return RowValues(~part.values.astype(np.bool_), part.known)


def _is_null(part: RowValues) -> RowValues:
    return RowValues(~part.known, np.ones(len(part.known), np.bool_))


_FUNCTIONS: dict[str, Callable[..., RowValues]] = {
    "and": _and,
    "or": _or,
    "not": _not,
    "is_null": _is_null,
    "=": _comparing(_equal),
    "<>": _comparing(lambda x, y: ~_equal(x, y)),
    "<": _comparing(_below),
    "<=": _comparing(_at_most),
    ">": _comparing(lambda x, y: _below(y, x)),
    ">=": _comparing(lambda x, y: _at_most(y, x)),
    # Whole numbers go from the largest on to the smallest, in both forms.
    "+": _computing(np.add),
    "-": _computing(np.subtract),
    "*": _computing(np.multiply),
}
