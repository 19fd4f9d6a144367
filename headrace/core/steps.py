"""The table of carried steps: what each makes of a key's events in order, with its state.

A step is a function over one run of a key's events:
    run(state, times, *columns) -> (state after them, one value for each event)
For every cut of the events, run(run(zero, a), b) = run(zero, a + b), so an epoch may end anywhere.
States are plain values that msgspec can write. tests/core/test_steps.py checks both for every row
of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.core.order import below
from headrace.core.schema import Type
from headrace.core.time import SECOND

State = Any
Values = list[Any]
Run = Callable[..., tuple[State, Values]]
BIGINT, DOUBLE = Type("BIGINT"), Type("DOUBLE")
_BIGINT_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class CarriedStep:
    """One carried step. `run` takes the step's parameters after the columns."""

    name: str
    columns: int
    parameters: int
    takes: str
    returns: Callable[[tuple[Type, ...]], Type | None]  # None: not for these types
    run: Run
    zero: State = None


def _same(types: tuple[Type, ...]) -> Type | None:
    return None if types[0].nested else types[0]


def _double(types: tuple[Type, ...]) -> Type | None:
    return DOUBLE if types[0].numeric else None


def _wide(types: tuple[Type, ...]) -> Type | None:
    return {"INT": BIGINT, "BIGINT": BIGINT, "DOUBLE": DOUBLE}.get(types[0].name)


def _bigint(types: tuple[Type, ...]) -> Type | None:
    return BIGINT


def _row_number(state: State, times: Sequence[int]) -> tuple[State, Values]:
    end = state + len(times)
    return end, list(range(state + 1, end + 1))


def _ordinal(state: State, times: Sequence[int]) -> tuple[State, Values]:
    end = state + len(times)
    return end, list(range(state, end))


def _punctuation(
    state: State, times: Sequence[int], ends: Values, size: int | None, age_us: int | None
) -> tuple[State, Values]:
    """The number of each event's window. `state` is the open one: number, events, beginning."""
    number, count, began = state
    values = []
    for time, end in zip(times, ends, strict=True):
        full = size is not None and count >= size
        old = age_us is not None and count > 0 and time - began > age_us
        if full or old:
            number, count = number + 1, 0
        began = time if count == 0 else began
        count += 1
        values.append(number)
        if end:
            number, count = number + 1, 0
    return [number, count, began], values


def _count(state: State, times: Sequence[int], column: Values) -> tuple[State, Values]:
    values = []
    for value in column:
        state += value is not None
        values.append(state)
    return state, values


def _sum(state: State, times: Sequence[int], column: Values) -> tuple[State, Values]:
    total = int(state) if isinstance(state, str) else state
    values = []
    for value in column:
        if value is not None:
            total = value if total is None else total + value
        values.append(_within_bigint(total))
    # A total outside of BIGINT is kept as text, because it may come back.
    return (total if _within_bigint(total) is not None else _text(total)), values


def _within_bigint(total: Any) -> Any:
    outside = isinstance(total, int) and not -_BIGINT_MAX - 1 <= total <= _BIGINT_MAX
    return None if outside else total


def _text(total: Any) -> str | None:
    return None if total is None else str(total)


def _avg(state: State, times: Sequence[int], column: Values) -> tuple[State, Values]:
    total, count = int(state[0]) if isinstance(state[0], str) else state[0], state[1]
    values = []
    for value in column:
        if value is not None:
            total, count = total + value, count + 1
        values.append(total / count if count else None)
    return [total if _within_bigint(total) is not None else _text(total), count], values


def _least(state: State, times: Sequence[int], column: Values) -> tuple[State, Values]:
    values = []
    for value in column:
        if value is not None and (state is None or below(value, state)):
            state = value
        values.append(state)
    return state, values


def _greatest(state: State, times: Sequence[int], column: Values) -> tuple[State, Values]:
    values = []
    for value in column:
        if value is not None and (state is None or below(state, value)):
            state = value
        values.append(state)
    return state, values


def _first(state: State, times: Sequence[int], column: Values) -> tuple[State, Values]:
    # In a list, because the first value may itself be NULL.
    state = state if state is not None else [column[0]]
    return state, [state[0]] * len(column)


def _current(state: State, times: Sequence[int], column: Values) -> tuple[State, Values]:
    return None, column


def _lag(state: State, times: Sequence[int], column: Values) -> tuple[State, Values]:
    return column[-1], [state, *column[:-1]]


def _last_known(state: State, times: Sequence[int], column: Values) -> tuple[State, Values]:
    values = []
    for value in column:
        state = value if value is not None else state
        values.append(state)
    return state, values


def _ewma(state: State, times: Sequence[int], column: Values, alpha: float) -> tuple[State, Values]:
    values, keep = [], 1 - alpha
    for value in column:
        if value is not None:
            state = float(value) if state is None else alpha * value + keep * state
        values.append(state)
    return state, values


def _delta(state: State, times: Sequence[int], column: Values) -> tuple[State, Values]:
    values = []
    for value in column:
        known = value is not None and state is not None
        values.append(_within_bigint(value - state) if known else None)
        state = value if value is not None else state
    return state, values


def _rate(state: State, times: Sequence[int], column: Values) -> tuple[State, Values]:
    values: Values = []
    for time, value in zip(times, column, strict=True):
        if value is None:
            values.append(None)
            continue
        passed = time - state[1] if state is not None else 0
        values.append((value - state[0]) * SECOND / passed if passed else None)
        state = [value, time]
    return state, values


_ANY, _NUMBER, _NOTHING = "any value", "INT, BIGINT or DOUBLE", "nothing"

STEPS: dict[str, CarriedStep] = {
    row.name: row
    for row in (
        CarriedStep("row_number", 0, 0, _NOTHING, _bigint, _row_number, 0),
        CarriedStep("count", 1, 0, _ANY, _bigint, _count, 0),
        CarriedStep("sum", 1, 0, _NUMBER, _wide, _sum),
        CarriedStep("avg", 1, 0, _NUMBER, _double, _avg, [0, 0]),
        CarriedStep("min", 1, 0, _ANY, _same, _least),
        CarriedStep("max", 1, 0, _ANY, _same, _greatest),
        CarriedStep("first_value", 1, 0, _ANY, _same, _first),
        CarriedStep("last_value", 1, 0, _ANY, _same, _current),
        CarriedStep("lag", 1, 0, _ANY, _same, _lag),
        CarriedStep("last_known", 1, 0, _ANY, _same, _last_known),
        CarriedStep("ewma", 1, 1, "a number, and a weight above 0 and at most 1", _double, _ewma),
        CarriedStep("delta", 1, 0, _NUMBER, _wide, _delta),
        CarriedStep("rate", 1, 0, _NUMBER, _double, _rate),
    )
}
# The steps behind windows, which SQL does not call by these names.
ORDINAL = CarriedStep("ordinal", 0, 0, _NOTHING, _bigint, _ordinal, 0)
PUNCTUATION = CarriedStep("punctuation", 1, 2, "BOOLEAN", _bigint, _punctuation, [0, 0, 0])
WINDOW_STEPS = {step.name: step for step in (ORDINAL, PUNCTUATION)}


def step_named(name: str) -> CarriedStep:
    return STEPS.get(name) or WINDOW_STEPS[name]
