"""The vector form of each step gives the values and states of its `run`, to the last bit."""

from __future__ import annotations

import math
import struct
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from chance import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.carry.rounds import Rounds
from headrace.carry.step_runs import StepRuns
from headrace.carry.vector_steps import VECTOR_STEPS
from headrace.compile.plan import StepPlan
from headrace.core.steps import step_named

EDGE = 2**63 - 1
NEVER = 10_000  # so many runs that there are no rounds
PARAMETERS: dict[str, list[tuple[Any, ...]]] = {
    "ewma": [(0.3,), (1.0,)],
    "punctuation": [(3, None), (None, 10), (2, 7), (None, None)],
}
INTEGERS = st.one_of(
    st.none(), st.integers(-9, 9), st.integers(-EDGE - 1, EDGE), st.sampled_from([2**53, 2**53 + 1])
)
DOUBLES = st.one_of(st.none(), st.floats(), st.sampled_from([0.0, -0.0, math.nan, 0.1, 1e308]))
VALUES = {
    pa.int32(): st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1)),
    pa.int64(): INTEGERS,
    pa.float64(): DOUBLES,
    pa.string(): st.one_of(st.none(), st.sampled_from("xyz")),
    pa.decimal128(9, 2): st.one_of(st.none(), st.decimals(-999, 999, places=2)),
    pa.bool_(): st.one_of(st.none(), st.booleans()),
}
TYPES = {
    "punctuation": [pa.bool_()],
    "count": [*VALUES],
    "lag": [*VALUES][:-2],
    "last_known": [*VALUES][:-2],
    "min": [*VALUES][:-2],
    "max": [*VALUES][:-2],
}
NUMBERS = [*VALUES][:3]
CASES = [
    (name, type, parameters)
    for name in VECTOR_STEPS
    for type in TYPES.get(name, NUMBERS)
    for parameters in PARAMETERS.get(name, [()])
]


def made_type(name: str, type: pa.DataType) -> pa.DataType:
    if name in ("ewma", "avg", "rate"):
        return pa.float64()
    if name in ("min", "max", "lag", "last_known"):
        return type
    if name in ("sum", "delta"):
        return pa.float64() if type == pa.float64() else pa.int64()
    return pa.int64()


def run(case: Any, runs: list[list[tuple[int, Any]]], states: list[Any], runs_min: int) -> Any:
    """States and values of the runs, in rounds of so many."""
    name, type, parameters = case
    step = step_named(name)
    plan = StepPlan(name, ("c",) * step.columns, parameters, "w", "")
    events = [event for each in runs for event in each]
    uppers = np.cumsum([len(each) for each in runs], dtype=np.int64)
    rounds = Rounds(uppers - [len(each) for each in runs], uppers, runs_min)
    times = np.array([time for time, _ in events], np.int64)
    columns = [pa.array([value for _, value in events], type)] * step.columns
    after, values = StepRuns(plan, step, rounds, times, columns, made_type(name, type)).run(states)
    return after, values


def bits(value: Any) -> Any:
    """Equal for values with the same bits; all NaN are one value."""
    if isinstance(value, float):
        return "NaN" if value != value else struct.pack("d", value)
    return [bits(each) for each in value] if isinstance(value, list) else (type(value), value)


def runs_of(type: pa.DataType) -> st.SearchStrategy[Any]:
    event = st.tuples(st.integers(0, 30), VALUES[type])
    run = st.lists(event, max_size=6).map(lambda found: sorted(found, key=lambda each: each[0]))
    return st.lists(run, min_size=1, max_size=5)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]} {case[1]} {case[2]}")
@settings(max_examples=examples(25))
@given(data=st.data(), runs_min=st.integers(1, 4))
def test_a_step_makes_in_rounds_what_it_makes_run_by_run(
    case: Any, data: st.DataObject, runs_min: int
) -> None:
    runs = data.draw(runs_of(case[1]))
    zero = step_named(case[0]).zero
    begun, _ = run(case, runs, [zero] * len(runs), NEVER)
    for states in ([zero] * len(runs), msgspec.msgpack.decode(msgspec.msgpack.encode(begun))):
        expected, values = run(case, runs, states, NEVER)
        after, made = run(case, runs, states, runs_min)
        assert bits(after) == bits(expected)
        assert bits(made.to_pylist()) == bits(values.to_pylist())
        assert made.type == values.type


@pytest.mark.parametrize("name", ["sum", "avg"])
def test_a_total_outside_of_bigint_comes_back(name: str) -> None:
    case, zero = (name, pa.int64(), ()), step_named(name).zero
    outside, _ = run(case, [[(0, EDGE), (1, EDGE)]] * 2, [zero] * 2, NEVER)
    after, values = run(case, [[(2, -EDGE)], [(2, None)]], outside, 1)
    assert values.to_pylist() == ([EDGE, None] if name == "sum" else [EDGE / 3, 2 * EDGE / 2])
    assert bits(after) == bits(run(case, [[(2, -EDGE)], [(2, None)]], outside, NEVER)[0])


@pytest.mark.parametrize("name", ["sum", "avg", "delta", "rate"])
def test_numbers_too_large_for_a_column_are_taken_by_run(name: str) -> None:
    case, states = (name, pa.int64(), ()), [step_named(name).zero] * 2
    runs = [[(0, EDGE), (1, EDGE - 1), (2, -EDGE)], [(0, -EDGE), (1, EDGE)]]
    (after, made), (expected, values) = (run(case, runs, states, least) for least in (1, NEVER))
    assert bits(after) == bits(expected)
    assert bits(made.to_pylist()) == bits(values.to_pylist())


@pytest.mark.parametrize("name", VECTOR_STEPS)
def test_a_vector_form_is_used_where_nothing_is_special(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StepRuns, "one_by_one", None)
    case = (name, TYPES.get(name, NUMBERS)[0], PARAMETERS.get(name, [()])[0])
    value = True if name == "punctuation" else 7
    run(case, [[(0, value), (5, None)], [(1, value)]], [step_named(name).zero] * 2, 1)


@given(
    lengths=st.lists(st.integers(0, 9), max_size=9),
    runs_min=st.integers(1, 4),
)
def test_every_event_is_in_one_round_or_left(lengths: list[int], runs_min: int) -> None:
    uppers = np.cumsum(lengths, dtype=np.int64)
    rounds = Rounds(uppers - lengths, uppers, runs_min)
    taken = [row for rows in rounds for row in rows.tolist()]
    left = [row for _, lower, upper in rounds.left() for row in range(lower, upper)]
    assert sorted([*taken, *left]) == list(range(sum(lengths)))
    assert all(len(rows) >= runs_min for rows in rounds)
    in_order = [row for _, lower, upper in rounds.all() for row in range(lower, upper)]
    assert sorted(in_order) == list(range(sum(lengths)))
