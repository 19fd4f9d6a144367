"""Masks computed in columns for the rows of many keys are those of the closures, row by row."""

from __future__ import annotations

import math
from typing import Any

import pytest
from chance import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.pattern import Expression, FunctionCall, Literal, RowNavigation, Value
from headrace.pattern.evaluate import ExpressionCompiler
from headrace.pattern.row_masks import NotColumns, RowColumns, VariableCondition, evaluate, masks_of
from headrace.pattern.trail import Trail, TrailSlots

COLUMNS = {"n": 0, "d": 1, "b": 2, "t": 3}
EDGE = 2**63
BIGINTS = st.one_of(st.none(), st.integers(-2, 2), st.sampled_from([-EDGE, EDGE - 1, 2**53 + 1]))
DOUBLES = st.one_of(
    st.none(), st.sampled_from([math.nan, 0.0, -0.0, math.inf, -math.inf, 0.5, 2.0**53])
)
VALUES = st.tuples(
    BIGINTS, DOUBLES, st.one_of(st.none(), st.booleans()), st.sampled_from(["a", "b", None])
)
KEYS = st.lists(st.lists(VALUES, min_size=1, max_size=5), min_size=1, max_size=4)
COMPARISONS, ARITHMETIC = ["=", "<>", "<", "<=", ">", ">="], ["+", "-", "*"]


def call(name: str, *arguments: Expression) -> FunctionCall:
    return FunctionCall(name, arguments)


def at(column: str) -> st.SearchStrategy[Expression]:
    return st.sampled_from([0, -1, -2]).map(lambda shift: Value(column, RowNavigation(shift=shift)))


def numbers(column: str, constants: list[Any]) -> st.SearchStrategy[Expression]:
    leaf = st.one_of(at(column), st.sampled_from(constants).map(Literal))
    return st.one_of(leaf, st.builds(call, st.sampled_from(ARITHMETIC), leaf, leaf))


def comparisons(column: str, constants: list[Any]) -> st.SearchStrategy[Expression]:
    one = numbers(column, constants)
    return st.builds(call, st.sampled_from(COMPARISONS), one, one)


COMPARED = st.one_of(
    at("b"),
    comparisons("n", [0, 1, EDGE - 1, 2**53]),
    comparisons("d", [0.0, 2.0**53, math.nan]),
    st.builds(call, st.just("is_null"), st.sampled_from("ndbt").flatmap(at)),
    st.builds(call, st.just("="), at("t"), st.just(Literal("a"))),
    st.builds(call, st.sampled_from(["<", "="]), at("n"), at("d")),
)
CONDITIONS = st.recursive(
    COMPARED,
    lambda inner: st.one_of(
        st.builds(call, st.sampled_from(["and", "or"]), inner, inner),
        st.builds(call, st.just("not"), inner),
    ),
    max_leaves=4,
)


def rows_of(keys: list[list[Any]]) -> tuple[list[Any], list[int]]:
    rows, lowers = [], []
    for key in keys:
        lowers.append(len(rows))
        rows += [(time, (time,), values) for time, values in enumerate(key)]
    return rows, lowers


def by_closures(
    keys: list[list[Any]], conditions: list[VariableCondition], trail: Trail
) -> list[int]:
    masks = []
    for key in keys:
        trail.rows, _ = rows_of([key])
        for trail.at in range(len(key)):
            masks.append(1 + sum(c.bit for c in conditions if c.closure(trail)))
    return masks


@settings(max_examples=examples(400))
@given(keys=KEYS, expressions=st.lists(CONDITIONS, min_size=1, max_size=3))
def test_masks_are_those_of_the_closures(keys: list[Any], expressions: list[Expression]) -> None:
    needs = TrailSlots({})
    scope, trail = ExpressionCompiler(COLUMNS, needs, "A"), Trail(needs, ["A"], COLUMNS)
    conditions = [VariableCondition(2 << n, scope.closure(e), e) for n, e in enumerate(expressions)]
    rows, lowers = rows_of(keys)
    made = masks_of(rows, lowers, 1, conditions, COLUMNS, trail)
    assert made == by_closures(keys, conditions, trail)


def test_numbers_of_one_type_are_compared_in_columns() -> None:
    falling = call("<", Value("n", RowNavigation()), Value("n", RowNavigation(shift=-1)))
    rows, lowers = rows_of([[(3, None, None, None), (2, None, None, None)]] * 2)
    values, known = evaluate(falling, RowColumns(rows, lowers), COLUMNS)
    assert (values & known).tolist() == [False, True, False, True]


def test_texts_are_compared_by_the_closure() -> None:
    rows, lowers = rows_of([[(3, None, None, "a")]])
    with pytest.raises(NotColumns):
        evaluate(Value("t", RowNavigation()), RowColumns(rows, lowers), COLUMNS)


def test_more_variables_than_a_word_has_bits_have_masks() -> None:
    needs = TrailSlots({})
    scope, trail = ExpressionCompiler(COLUMNS, needs, "A"), Trail(needs, ["A"], COLUMNS)
    positive = call(">", Value("n", RowNavigation()), Literal(0))
    conditions = [VariableCondition(2 << n, scope.closure(positive), positive) for n in range(100)]
    rows, lowers = rows_of([[(1, None, None, None), (-1, None, None, None)]])
    assert masks_of(rows, lowers, 1, conditions, COLUMNS, trail) == [2**101 - 1, 1]
