"""Decimals are decimals again when a fold continues from stored states."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headrace.carry.fold import fold
from headrace.carry.match import match
from headrace.compile.plan import MatchPlan, StepPlan
from headrace.core.event import CUT, KEY, SEQ, STATE, TIME
from headrace.core.pattern import (
    FunctionCall,
    Pattern,
    RowNavigation,
    Sequence,
    Threshold,
    Value,
    Variable,
)
from tests.carry.test_match import AFTER, BEFORE, event

MONEY = pa.decimal128(9, 2)


def priced(schema: pa.Schema, column: str) -> pa.Schema:
    return schema.set(schema.get_field_index(column), pa.field(column, MONEY))


def in_epochs(run: Any, schema: pa.Schema, epochs: list[list[Any]]) -> Iterator[Any]:
    """The rows of each epoch, which begins with the states that the one before has left."""
    states: list[Any] = []
    for number, events in enumerate(epochs):
        begun = [{name: row.get(name) for name in schema.names} for row in states]
        batches = pa.Table.from_pylist([*begun, *events], schema).to_batches()
        made = [row for batch in run(batches, number) for row in batch.to_pylist()]
        states = [row for row in made if row[STATE] is not None]
        yield [row for row in made if row[STATE] is None]


@pytest.mark.parametrize(
    ("step", "expected"),
    [("min", "1.50"), ("max", "2.50"), ("lag", "1.50"), ("last_known", "2.50"),
     ("first_value", "1.50"), ("last_value", "2.50")],
)  # fmt: skip
def test_a_running_value_of_decimals_continues(step: str, expected: str) -> None:
    before = pa.schema(
        [(KEY, pa.string()), (TIME, pa.int64()), (SEQ, pa.int64()), ("c0", MONEY),
         (STATE, pa.binary()), (CUT, pa.int32())]
    )  # fmt: skip
    names = [("w0", MONEY), ("_timer", pa.int64()), ("_disordered", pa.bool_())]
    after, plan = pa.schema([*before, *names]), StepPlan(step, ("c0",), (), "w0", "DECIMAL(9,2)")
    events = [
        [{KEY: "a", TIME: n, SEQ: n, "c0": Decimal(price), STATE: None, CUT: 0}]
        for n, price in enumerate(["1.50", "2.50"])
    ]
    *_, rows = in_epochs(lambda batches, _: fold(batches, [plan], after), before, events)
    assert [row["w0"] for row in rows] == [Decimal(expected)]


def test_a_pattern_compares_decimals_that_have_waited() -> None:
    dearer = FunctionCall(">", (Value("c2", RowNavigation()), Value("c2", RowNavigation(name="A"))))
    measures = (("m0", Value("c2", RowNavigation(name="A"))),)
    node = Sequence((Variable("A"), Variable("B")))
    pattern = Pattern(node, ("c2",), (("B", dearer),), measures)
    plan = MatchPlan(pattern, (), (("m0", "DECIMAL(9,2)"),))
    after = AFTER.set(AFTER.get_field_index("m0"), pa.field("m0", MONEY))
    events = [
        [event("a", time) | {"c2": Decimal(price)}]
        for time, price in ((1, "9.50"), (2, "10.50"), (3, "1.00"))
    ]
    marks = [[(0, 2)], [(0, 2)], [(0, 9)]]
    run = lambda batches, n: match(batches, plan, marks[n], None, after)  # noqa: E731
    *_, rows = in_epochs(run, priced(BEFORE, "c2"), events)
    assert [row["m0"] for row in rows] == [Decimal("9.50")]


def test_a_threshold_counts_a_decimal_that_was_stored_once() -> None:
    threshold = Threshold(("c2",), 2, 100, "c2")
    plan = MatchPlan(threshold, (), (("first", "BIGINT"), ("last", "BIGINT")))
    after = pa.schema(
        [*(f for f in AFTER if f.name != "m0"), ("first", pa.int64()), ("last", pa.int64())]
    )
    prices = ("9.50", "9.50", "8.00")
    events = [[event("a", t) | {"c2": Decimal(price)}] for t, price in enumerate(prices, start=1)]
    run = lambda batches, n: match(batches, plan, [(0, n + 2)], None, after)  # noqa: E731
    found = [
        [(row["first"], row["last"]) for row in rows]
        for rows in in_epochs(run, priced(BEFORE, "c2"), events)
    ]
    assert found == [[], [], [(2, 3)]]
