"""Every row of the table of carried steps: a run may be cut anywhere, and states can be stored."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.steps import ORDINAL, PUNCTUATION, STEPS, CarriedStep

ALL = [*STEPS.values(), ORDINAL, PUNCTUATION]
PARAMETERS: dict[str, tuple[Any, ...]] = {"ewma": (0.3,), "punctuation": (3, 10)}
BIGINTS = st.integers(-(2**62), 2**62)
VALUES = st.one_of(st.none(), BIGINTS, st.floats(-1e9, 1e9))
rows = pytest.mark.parametrize("step", ALL, ids=lambda step: step.name)


def run(step: CarriedStep, state: Any, events: list[tuple[int, Any]]) -> tuple[Any, list[Any]]:
    times = [time for time, _ in events]
    columns = [[value for _, value in events]] * step.columns
    return step.run(state, times, *columns, *PARAMETERS.get(step.name, ()))


def stored(state: Any) -> Any:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(state))


@rows
@given(
    events=st.lists(st.tuples(st.integers(0, 100), VALUES), min_size=1).map(
        lambda found: sorted(found, key=lambda event: event[0])
    ),
    data=st.data(),
)
def test_a_run_may_be_cut_anywhere(
    step: CarriedStep, events: list[tuple[int, Any]], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(events)))
    _, whole = run(step, step.zero, events)
    state, values = step.zero, []
    for part in (events[:cut], events[cut:]):
        if part:
            state, made = run(step, stored(state), part)
            values += made
    assert values == whole


@rows
def test_a_run_leaves_the_zero_as_it_is(step: CarriedStep) -> None:
    before = msgspec.msgpack.encode(step.zero)
    run(step, step.zero, [(0, 1), (1, None), (2, 3)])
    assert msgspec.msgpack.encode(step.zero) == before


def values_of(name: str, column: list[Any], *parameters: Any) -> list[Any]:
    times = [1_000_000 * n for n in range(len(column))]
    step = STEPS[name]
    columns = [column] if step.columns else []
    return step.run(step.zero, times, *columns, *parameters)[1]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("row_number", [1, 2, 3, 4]),
        ("count", [1, 1, 2, 3]),
        ("sum", [4, 4, 6, 15]),
        ("avg", [4, 4, 3, 5]),
        ("min", [4, 4, 2, 2]),
        ("max", [4, 4, 4, 9]),
        ("first_value", [4, 4, 4, 4]),
        ("last_value", [4, None, 2, 9]),
        ("lag", [None, 4, None, 2]),
        ("last_known", [4, 4, 2, 9]),
        ("delta", [None, None, -2, 7]),
        ("rate", [None, None, -1.0, 7.0]),
    ],
)
def test_each_step_passes_over_null_in_its_own_way(name: str, expected: list[Any]) -> None:
    assert values_of(name, [4, None, 2, 9]) == expected


def test_nan_is_above_every_other_number() -> None:
    column = [math.nan, 2.0, math.nan, 1.0, math.inf]
    assert values_of("min", column)[1:] == [2.0, 2.0, 1.0, 1.0]
    assert all(map(math.isnan, values_of("max", column)))
    assert math.isnan(values_of("max", column[::-1])[-1])


def test_an_exponential_average_begins_with_its_first_value() -> None:
    assert values_of("ewma", [None, 8, 4, None], 0.5) == [None, 8.0, 6.0, 6.0]


def test_a_sum_outside_of_bigint_is_null_until_it_comes_back() -> None:
    top = 2**63 - 1
    assert values_of("sum", [top, 1, -1]) == [top, None, top]


def test_a_rate_needs_time_to_have_passed() -> None:
    step = STEPS["rate"]
    assert step.run(None, [5, 5, 1_000_005], [1, 2, 5])[1] == [None, None, 3.0]
