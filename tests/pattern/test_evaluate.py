"""Expressions: a line for each function, and what places and aggregates of a trail give."""

from __future__ import annotations

import math
from decimal import Decimal
from functools import reduce
from typing import Any

import pytest

from headrace.core.pattern import (
    Classifier,
    FunctionCall,
    Literal,
    MatchAggregate,
    RowNavigation,
    Value,
)
from headrace.pattern.evaluate import FUNCTIONS, ExpressionCompiler
from headrace.pattern.trail import RowPending, Trail, TrailSlots, fold_of
from tests.pattern.letters import lettered

NAN, LARGEST = math.nan, 2**63 - 1
CALLS = [
    ("and", [True, True], True),
    ("and", [True, None], None),
    ("and", [None, False], False),
    ("or", [False, True], True),
    ("or", [None, True], True),
    ("or", [False, None], None),
    ("or", [False, False], False),
    ("not", [True], False),
    ("not", [None], None),
    ("=", [1, 1.0], True),
    ("=", [None, 1], None),
    ("=", [Decimal("0.1"), 0.1], True),
    ("<>", [1, 2], True),
    ("<", [1, Decimal(2)], True),
    ("<=", ["a", "a"], True),
    (">", [0.5, Decimal("0.25")], True),
    (">=", [1, 2], False),
    ("<=>", [None, None], True),
    ("<=>", [None, 1], False),
    ("<=>", [1, 1], True),
    ("=", [NAN, NAN], True),
    ("=", [0.0, -0.0], True),
    ("<>", [NAN, NAN], False),
    ("<", [math.inf, NAN], True),
    ("<", [NAN, NAN], False),
    ("<=", [NAN, NAN], True),
    (">", [NAN, math.inf], True),
    (">", [1.0, NAN], False),
    (">=", [NAN, 1.0], True),
    ("<=>", [NAN, NAN], True),
    ("between", [NAN, 1.0, NAN], True),
    ("in", [NAN, 1.0, NAN], True),
    ("least", [NAN, 1.0, None], 1.0),
    ("+", [LARGEST, 1], -LARGEST - 1),
    ("-", [-LARGEST - 1, 1], LARGEST),
    ("*", [LARGEST, 2], -2),
    ("neg", [-LARGEST - 1], -LARGEST - 1),
    ("abs", [-LARGEST - 1], -LARGEST - 1),
    ("round", [1e300], 1e300),
    ("round", [LARGEST, -1], -LARGEST + 1),
    ("cast_bigint", [NAN], 0),
    ("cast_bigint", [1e30], LARGEST),
    ("cast_bigint", [-math.inf], -LARGEST - 1),
    ("cast_bigint", [" -7.9 "], -7),
    ("cast_bigint", [".5"], 0),
    ("cast_bigint", ["1e3"], None),
    ("cast_bigint", ["1_000"], None),
    ("cast_bigint", ["9223372036854775808"], None),
    ("cast_double", ["1_0"], None),
    ("+", [1, 0.5], 1.5),
    ("+", [Decimal("0.5"), 0.5], 1.0),
    ("-", [1, None], None),
    ("*", [Decimal("1.5"), 2], Decimal("3.0")),
    ("/", [1, 2], 0.5),
    ("/", [Decimal(1), 4], 0.25),
    ("/", [1, 0], None),
    ("%", [-7, 3], -1),
    ("%", [7, -3], 1),
    ("%", [-7.5, 2], -1.5),
    ("%", [Decimal("-7.5"), 2], Decimal("-1.5")),
    ("%", [1, 0], None),
    ("neg", [3], -3),
    ("is_null", [None], True),
    ("is_null", [0], False),
    ("coalesce", [None, 0, 1], 0),
    ("coalesce", [None, None], None),
    ("case", [False, 1, None, 2, True, 3], 3),
    ("case", [False, 1, 9], 9),
    ("case", [False, 1], None),
    ("if", [None, 1, 2], 2),
    ("if", [True, 1, 2], 1),
    ("in", [1, 2, 1], True),
    ("in", [1, 2, None], None),
    ("in", [1, 2, 3], False),
    ("between", [2, 1, 3], True),
    ("between", [4, None, 3], False),
    ("between", [2, None, 3], None),
    ("abs", [-2.5], 2.5),
    ("least", [3, None, 1], 1),
    ("greatest", [3, None, 1], 3),
    ("greatest", [None, None], None),
    ("concat", ["a", 1, True, 2.0], "a1true2.0"),
    ("concat", ["a", None], None),
    ("like", ["cart_1", "cart\\_%"], True),
    ("like", ["cartx1", "cart\\_%"], False),
    ("like", ["a\nb", "a_b"], True),
    ("like", ["a.c", "a.%"], True),
    ("like", ["abc", "a.%"], False),
    ("upper", ["aß"], "ASS"),
    ("lower", ["AB"], "ab"),
    ("length", ["abc"], 3),
    ("round", [2.5], 3.0),
    ("round", [-2.5], -3.0),
    ("round", [1.005, 2], 1.01),
    ("round", [Decimal("1.25"), 1], Decimal("1.3")),
    ("round", [15, -1], 20),
    ("round", [None, 1], None),
    ("cast_double", ["1e3"], 1000.0),
    ("cast_double", ["x"], None),
    ("cast_bigint", [-1.9], -1),
    ("cast_bigint", [" 12 "], 12),
    ("cast_bigint", ["x"], None),
    ("cast_bigint", [float("inf")], LARGEST),
    ("cast_string", [False], "false"),
    ("cast_string", [1.5], "1.5"),
    ("cast_string", [12345678.9], "1.23456789E7"),
    ("cast_string", [1e-5], "1.0E-5"),
    ("cast_string", [Decimal("1.50")], "1.50"),
]


@pytest.mark.parametrize(("function", "arguments", "expected"), CALLS)
def test_function_gives(function: str, arguments: list[Any], expected: Any) -> None:
    call = FunctionCall(function, tuple(map(Literal, arguments)))
    value = ExpressionCompiler({}, TrailSlots({})).closure(call)(Trail(TrailSlots({}), (), {}))
    assert value == expected
    assert type(value) is type(expected)


def test_every_function_has_a_line() -> None:
    assert {function for function, _, _ in CALLS} == set(FUNCTIONS)


class Told:
    """A trail of "abbca" taken as in A B B C, with x = 10, NULL, 30, 20, 50, and expressions."""

    def __init__(self, *expressions: Any, ended: bool = True) -> None:
        needs, columns = TrailSlots({"U": ("A", "B")}), {"letter": 0, "x": 1}
        scope = ExpressionCompiler(columns, needs)
        self.closures = [scope.closure(expression) for expression in expressions]
        self.trail = Trail(needs, "ABC", columns)
        self.trail.begin(lettered("abbca", [10, None, 30, 20, 50]), 1, ended)
        for at, name in enumerate("ABBC"):
            self.trail.push(at, name)

    def values(self) -> list[Any]:
        return [closure(self.trail) for closure in self.closures]


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (RowNavigation(), 20),
        (RowNavigation(first=True), 10),
        (RowNavigation(offset=1), 30),
        (RowNavigation("A"), 10),
        (RowNavigation("B"), 30),
        (RowNavigation("B", first=True), None),
        (RowNavigation("B", first=True, offset=1), 30),
        (RowNavigation("B", offset=2), None),
        (RowNavigation("U"), 30),
        (RowNavigation("B", shift=1), 20),
        (RowNavigation("A", shift=-1), None),
        (RowNavigation(shift=1), 50),
        (RowNavigation(shift=2), None),
    ],
)
def test_place_is_counted_from_the_rows_of_its_variable(
    place: RowNavigation, expected: Any
) -> None:
    assert Told(Value("x", place)).values() == [expected]


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        (MatchAggregate("count", None), 4),
        (MatchAggregate("count", None, "B"), 2),
        (MatchAggregate("count", "x", "B"), 1),
        (MatchAggregate("sum", "x"), 60),
        (MatchAggregate("sum", "x", "U"), 40),
        (MatchAggregate("avg", "x"), 20.0),
        (MatchAggregate("min", "x"), 10),
        (MatchAggregate("max", "x"), 30),
        (MatchAggregate("collect_list", "x"), [10, 30, 20]),
        (MatchAggregate("count", "letter", distinct=True), 3),
        (MatchAggregate("collect_list", "letter", distinct=True), ["a", "b", "c"]),
    ],
)
def test_aggregate_is_over_the_rows_of_its_variable(
    aggregate: MatchAggregate, expected: Any
) -> None:
    assert Told(aggregate).values() == [expected]


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        (MatchAggregate("min", "x"), 1.0),
        (MatchAggregate("max", "x"), NAN),
        (MatchAggregate("count", "x", distinct=True), 3),
        (MatchAggregate("collect_list", "x", distinct=True), [NAN, 2.0, 1.0]),
    ],
)
def test_nan_is_one_value_above_every_other(aggregate: MatchAggregate, expected: Any) -> None:
    fold = fold_of(aggregate)
    state = reduce(fold.step, [float("nan"), 2.0, float("nan"), 1.0, None], fold.zero)
    assert repr(fold.finish(state)) == repr(expected)


def test_aggregates_of_no_rows() -> None:
    functions = ["count", "sum", "avg", "min", "max", "collect_list"]
    told = Told(*(MatchAggregate(function, "x") for function in functions))
    told.trail.cut(0)
    assert told.values() == [0, None, None, None, None, []]


def test_classifier_is_the_variable_that_took_the_row() -> None:
    places = [
        RowNavigation(),
        RowNavigation(shift=-1),
        RowNavigation("U"),
        RowNavigation(first=True),
        RowNavigation(shift=1),
    ]
    assert Told(*map(Classifier, places)).values() == ["C", "B", "B", "A", None]


def test_cut_undoes_a_push() -> None:
    told = Told(
        Value("x", RowNavigation("B")),
        MatchAggregate("sum", "x"),
        MatchAggregate("collect_list", "x", "U"),
    )
    before = told.values()
    told.trail.push(4, "B")
    assert told.values() == [50, 110, [10, 30, 50]]
    told.trail.cut(4)
    assert told.values() == before


def test_next_row_that_may_still_come_is_waited_for_whatever_the_rest_says() -> None:
    ahead = FunctionCall("=", (Value("x", RowNavigation(shift=2)), Literal(1)))
    told = Told(FunctionCall("and", (Literal(False), ahead)), ended=False)
    with pytest.raises(RowPending):
        told.values()
