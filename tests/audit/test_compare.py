"""Rows of an answer and of DuckDB, made by hand: which of them are the same."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from headrace.audit.compare import compare, values_equal
from headrace.compile.plan import OutputPlan, ViewPlan
from headrace.core.aggregate import Approximation
from headrace.serving.store import AuditResult

SPEED, ALWAYS = Approximation("speed", 0.01), Approximation("always", 0.01)
RANK = Approximation("always", 0.01, of="rank")


def found(
    type: str, ours: Any, theirs: Any, estimate: Approximation | None = None, fresh: int = 1
) -> int:
    key = OutputPlan("k", "STRING", "k0", key="k0")
    outputs = (key, OutputPlan("x", type, "p0", estimate=estimate))
    view = ViewPlan("v", "mergeable", "", outputs)
    return compare(view, [("a", ours, fresh)], [("a", theirs)]).differences


@pytest.mark.parametrize(
    ("estimate", "fresh", "ours", "differences"),
    [
        (ALWAYS, 0, 1_060, 0),
        (ALWAYS, 0, 1_061, 1),
        (SPEED, 1, 1_060, 0),
        (SPEED, 0, 1_001, 1),
        (None, 1, 1_001, 1),
        (RANK, 1, 5_000, 0),
    ],
)
def test_an_estimate_may_be_off_by_six_errors(
    estimate: Approximation | None, fresh: int, ours: int, differences: int
) -> None:
    assert found("BIGINT", ours, 1_000, estimate, fresh) == differences


@pytest.mark.parametrize(
    ("type", "ours", "theirs", "differences"),
    [
        ("ARRAY<BIGINT>", "[1, 2]", [1, 2], 0),
        ("ARRAY<BIGINT>", "[1, 2]", [2, 1], 1),
        ("ARRAY<BOOLEAN>", "[false, true]", [False, True], 0),
        ("ARRAY<TIMESTAMP>", '["1970-01-01T00:00:01Z"]', [datetime(1970, 1, 1, 0, 0, 1)], 0),
        ("ARRAY<DATE>", '["1970-01-02"]', [date(1970, 1, 2)], 0),
        ("ARRAY<DECIMAL(4,2)>", '["1.50", null]', [Decimal("1.50"), None], 0),
        ("ARRAY<DECIMAL(4,2)>", '["1.50"]', [Decimal("1.51")], 1),
        ("MAP<STRING, BINARY>", '{"a": "aGk=", "b": null}', {"b": None, "a": b"hi"}, 0),
        ("VARIANT", '{"a":1.5,"b":[1]}', '{"b": [1], "a": 1.50}', 0),
        ("VARIANT", '{"a":1.5}', '{"a": 1.6}', 1),
        ("DOUBLE", math.nan, math.nan, 0),
        ("DOUBLE", math.nan, 1.0, 1),
        ("DOUBLE", math.nan, None, 1),
        ("ARRAY<DOUBLE>", "[NaN]", [math.nan], 0),
        ("ARRAY<STRING>", '["\\u00fc"]', ["ü"], 0),
        ("STRUCT<below: BIGINT, bins: ARRAY<BIGINT>>", '{"below": 1, "bins": [2]}',
         {"below": 1, "bins": [2]}, 0),
        ("STRUCT<below: BIGINT, bins: ARRAY<BIGINT>>", '{"below": 1, "bins": [2]}',
         {"below": 0, "bins": [2]}, 1),
    ],
)  # fmt: skip
def test_lists_and_objects_must_be_equal(
    type: str, ours: str, theirs: Any, differences: int
) -> None:
    assert found(type, ours, theirs) == differences


def test_what_was_not_compared_is_named() -> None:
    outputs = (
        OutputPlan("p", "BIGINT", "p0", estimate=RANK),
        OutputPlan("n", "BIGINT", "p1", estimate=ALWAYS),
    )
    result = compare(ViewPlan("v", "mergeable", "", outputs), [(1, 2, 0)], [(None, 2)])
    estimates = "columns not compared, because they are estimates: p"
    assert (result.differences, result.note) == (0, estimates)


NEARBY = 0.1 + 0.2  # and 0.3: two doubles that differ in the last bit


def compared(answer: list[Any], expected: list[Any], *types: str) -> AuditResult:
    """Rows of keys of these types, and a count."""
    keys = [OutputPlan(f"k{n}", type, f"k{n}", key=f"k{n}") for n, type in enumerate(types)]
    outputs = (*keys, OutputPlan("n", "BIGINT", "p0"))
    return compare(ViewPlan("v", "mergeable", "", outputs), answer, expected)


def test_doubles_of_keys_may_differ_in_their_last_bits() -> None:
    ours = [(0.3, 5.0, 1, 0), (7.0, NEARBY, 2, 0), (None, math.inf, 3, 0)]
    theirs = [(7.0, 0.3, 2), (None, math.inf, 3), (NEARBY, 5.0, 1)]
    assert compared(ours, theirs, "DOUBLE", "DOUBLE").differences == 0


def test_doubles_of_keys_that_are_further_apart_are_different() -> None:
    found = compared([(0.3, 1, 0), (1.0, 1, 0)], [(0.300001, 1), (math.inf, 1)], "DOUBLE")
    assert found.differences == 4
    assert found.examples[0] == "k0=0.3: not found by DuckDB"


def test_a_difference_beside_such_a_key_is_found() -> None:
    assert compared([(0.3, 1, 0)], [(NEARBY, 2)], "DOUBLE").differences == 1


def test_rows_meet_by_their_other_keys_first() -> None:
    """As the rows of a rule do, which are grouped by place and by all values."""
    ours = [(0, "a", 0.3, 1, 0), (1, "a", NEARBY, 1, 0), (2, "b", 0.3, 1, 0)]
    theirs = [(0, "a", NEARBY, 1), (1, "a", 0.3, 1), (2, "b", 0.3, 1)]
    assert compared(ours, theirs, "BIGINT", "STRING", "DOUBLE").differences == 0


def test_keys_that_one_engine_rounds_apart_are_not_compared() -> None:
    found = compared([(0.3, 5, 0), (9.0, 1, 0)], [(0.3, 2), (NEARBY, 3), (9.0, 2)], "DOUBLE")
    assert found.differences == 1
    assert found.note == "rows not compared, because a key differs in its last bits: 1"


def test_a_second_row_of_a_key_that_is_no_number_is_found() -> None:
    ours = [(float("nan"), 5, 0), (float("nan"), 5, 0)]
    found = compared(ours, [(float("nan"), 5)], "DOUBLE")
    assert (found.differences, found.note) == (1, "")


def test_rows_without_their_keys_find_each_other_by_doubles_too() -> None:
    outputs = (OutputPlan("d", "DOUBLE", "p0"), OutputPlan("n", "BIGINT", "p1"))
    view = ViewPlan("v", "mergeable", "", outputs)
    assert compare(view, [(0.3, 7, 0), (NEARBY, 5, 0)], [(0.3, 5), (NEARBY, 7)]).differences == 0


@pytest.mark.parametrize(
    ("ours", "theirs", "differences"),
    [
        ("[0.3, null]", [NEARBY, None], 0),
        ("[0.3, 1.0]", [NEARBY], 1),
        ("[0.3]", [0.31], 1),
    ],
)
def test_doubles_in_lists_may_differ_in_their_last_bits(
    ours: str, theirs: list[Any], differences: int
) -> None:
    assert found("ARRAY<DOUBLE>", ours, theirs) == differences


def test_lists_of_doubles_in_rows_of_rules_may_differ_in_their_last_bits() -> None:
    types = ("BIGINT", "ARRAY<DOUBLE>")
    assert compared([(7, "[0.3]", 1, 0)], [(7, [NEARBY], 1)], *types).differences == 0
    assert compared([(7, "[0.3]", 1, 0)], [(7, [0.31], 1)], *types).differences == 1


def test_a_finite_double_is_not_infinite() -> None:
    assert found("DOUBLE", 5.0, math.inf) == 1


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [
        ("411.091429", 411.09142857142854, True),
        ("411.091428", 411.09142857142854, False),
        ("0.30", 0.30000000000000004, True),
        ("-9999999999.990000", -9999999999.99, True),
        ("1.000000", 1.0000006, False),
    ],
)
def test_a_decimal_and_a_double_are_alike_to_the_last_digit(
    ours: str, theirs: float, same: bool
) -> None:
    assert values_equal(Decimal(ours), theirs) == same


@pytest.mark.parametrize(
    ("type", "keys"),
    [("DOUBLE", [math.nan, 1.5, None, -1.0]), ("STRING", ["", "NaN", None, "a"]),
     ("BINARY", [b"", b"a", None])],
)  # fmt: skip
def test_rows_meet_by_keys_of_every_kind(type: str, keys: list[Any]) -> None:
    outputs = (OutputPlan("k", type, "k0", key="k0"), OutputPlan("x", "BIGINT", "p0"))
    view = ViewPlan("v", "mergeable", "", outputs)
    ours = [(key, n, 1) for n, key in enumerate(keys)]
    theirs = [(float("nan") if key != key else key, n) for n, key in enumerate(keys)]
    assert compare(view, ours, theirs[::-1]).differences == 0
