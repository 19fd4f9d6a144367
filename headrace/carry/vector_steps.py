"""The vector form of carried steps: each takes one event of many runs at a time.

Every run gets the operations of the step's own `run`, in the order of its events, so values and
states are the same to the last bit, however the events were cut. Where a vector form could differ,
as for a total outside of 64 bits, it does not fit, and `run` takes the events instead.
tests/carry/test_vector_steps.py compares the two for every row of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.core.time import SECOND

Array = NDArray[Any]
Arrays = tuple[Array, ...]
State = Any
_EXACT, _WIDE = 2**53, 2**63  # smaller whole numbers have an exact double, fit into a BIGINT
NUMBERS = (pa.int32(), pa.int64(), pa.float64())


class NullableColumn(NamedTuple):
    """Values, and which of them are known; one that is NULL is zero."""

    values: Array
    known: Array


class Events(NamedTuple):
    """One event of each run: its time, and its value if the step has a column."""

    times: Array
    values: Array
    known: Array


@dataclass(frozen=True, slots=True)
class VectorStep:
    """`begin` makes columns of the states of runs, `advance` takes an event of each run and changes
    them, `end` makes states of them again. `fits` says whether `advance` computes as `run` does.
    """

    begin: Callable[[Sequence[State], Any], Arrays]
    advance: Callable[..., NullableColumn]
    end: Callable[..., list[State]]
    takes: tuple[pa.DataType, ...] = NUMBERS
    computes: Callable[[Any], Any] = lambda dtype: dtype  # the type of values, for the column's
    fits: Callable[[Arrays, Events], bool] = lambda state, events: True


def column_of(array: pa.Array) -> NullableColumn:
    """A column of numbers or booleans."""
    known = np.asarray(array.is_valid())
    if array.null_count:
        array = array.fill_null(pa.scalar(0).cast(array.type))
    return NullableColumn(array.to_numpy(zero_copy_only=False), known)


def _wide(dtype: Any) -> Any:
    return np.result_type(dtype, np.int64)


def _double(dtype: Any) -> Any:
    return np.float64


def _largest(values: Array) -> int:
    return max(-int(values.min()), int(values.max())) if len(values) else 0


def _apart(state: Array, values: Array) -> int:
    """No two of them are further apart."""
    both = [column for column in (state, values) if len(column)]
    return max(int(c.max()) for c in both) - min(int(c.min()) for c in both) if both else 0


def _whole(values: Array) -> bool:
    return bool(values.dtype != np.float64)


# States that are one value, or NULL.


def _value_begin(states: Sequence[State], dtype: Any) -> Arrays:
    return tuple(map(np.array, column_of(pa.array(states, pa.from_numpy_dtype(dtype)))))


def _value_end(values: Array, known: Array) -> list[State]:
    pairs = zip(values.tolist(), known.tolist(), strict=True)
    return [value if found else None for value, found in pairs]


def _replace(state: Arrays, values: Array, where: Array) -> NullableColumn:
    np.copyto(state[0], values, where=where)
    np.logical_or(state[1], where, out=state[1])
    return NullableColumn(state[0], state[1])


def _ewma(state: Arrays, events: Events, alpha: float) -> NullableColumn:
    mean, begun = state
    moved = np.where(begun, alpha * events.values + (1 - alpha) * mean, events.values)
    return _replace(state, moved, events.known)


def _sum(state: Arrays, events: Events) -> NullableColumn:
    total, begun = state
    return _replace(state, np.where(begun, total + events.values, events.values), events.known)


def _sum_fits(state: Arrays, events: Events) -> bool:
    return not _whole(events.values) or _reach(state[0], events.values) < _WIDE


def _reach(totals: Array, values: Array) -> int:
    """No total is further from zero, whichever of the values are added to it."""
    return _largest(totals) + len(values) * _largest(values)


def _least(state: Arrays, events: Events) -> NullableColumn:
    least, begun = state
    better = events.known & (~begun | _below(events.values, least))
    return _replace(state, events.values, better)


def _greatest(state: Arrays, events: Events) -> NullableColumn:
    greatest, begun = state
    better = events.known & (~begun | _below(greatest, events.values))
    return _replace(state, events.values, better)


def _below(x: Array, y: Array) -> Array:
    """The order of values: NaN is above every other number."""
    found: Array = (x < y) | ((y != y) & (x == x))
    return found


def _last_known(state: Arrays, events: Events) -> NullableColumn:
    return _replace(state, events.values, events.known)


def _lag(state: Arrays, events: Events) -> NullableColumn:
    before = NullableColumn(state[0].copy(), state[1].copy())
    state[0][:], state[1][:] = events.values, events.known
    return before


def _delta(state: Arrays, events: Events) -> NullableColumn:
    made = NullableColumn(events.values - state[0], events.known & state[1])
    _replace(state, events.values, events.known)
    return made


def _delta_fits(state: Arrays, events: Events) -> bool:
    return not _whole(events.values) or _apart(state[0], events.values) < _WIDE


# Numbers of events.


def _number_begin(states: Sequence[State], dtype: Any) -> Arrays:
    return (np.array(states, np.int64),)


def _number_end(numbers: Array) -> list[State]:
    found: list[State] = numbers.tolist()
    return found


def _row_number(state: Arrays, events: Events) -> NullableColumn:
    np.add(state[0], 1, out=state[0])
    return NullableColumn(state[0], events.known)


def _ordinal(state: Arrays, events: Events) -> NullableColumn:
    made = NullableColumn(state[0].copy(), events.known)
    np.add(state[0], 1, out=state[0])
    return made


def _count(state: Arrays, events: Events) -> NullableColumn:
    np.add(state[0], events.known, out=state[0])
    return NullableColumn(state[0], np.ones(len(state[0]), np.bool_))


# Other states.


def _avg_begin(states: Sequence[State], dtype: Any) -> Arrays:
    totals, counts = zip(*states, strict=True)
    return np.array(totals, dtype), np.array(counts, np.int64)


def _avg(state: Arrays, events: Events) -> NullableColumn:
    total, count = state
    np.copyto(total, total + events.values, where=events.known)
    np.add(count, events.known, out=count)
    return NullableColumn(total / count, count > 0)


def _avg_end(total: Array, count: Array) -> list[State]:
    # The total of no events is the integer 0, also of doubles.
    pairs = zip(total.tolist(), count.tolist(), strict=True)
    return [[value if number else 0, number] for value, number in pairs]


def _avg_fits(state: Arrays, events: Events) -> bool:
    return not _whole(events.values) or _reach(state[0], events.values) < _EXACT


def _rate_begin(states: Sequence[State], dtype: Any) -> Arrays:
    known = np.array([state is not None for state in states], np.bool_)
    values, times = zip(*(state or (0, 0) for state in states), strict=True)
    return np.array(values, dtype), known, np.array(times, np.int64)


def _rate(state: Arrays, events: Events) -> NullableColumn:
    before, begun, since = state
    passed = events.times - since
    made = NullableColumn(
        (events.values - before) * SECOND / passed, events.known & begun & (passed != 0)
    )
    np.copyto(since, events.times, where=events.known)
    _replace((before, begun), events.values, events.known)
    return made


def _rate_end(values: Array, known: Array, times: Array) -> list[State]:
    rows = zip(values.tolist(), known.tolist(), times.tolist(), strict=True)
    return [[value, time] if found else None for value, found, time in rows]


def _rate_fits(state: Arrays, events: Events) -> bool:
    passed = _apart(state[2], events.times)
    if not _whole(events.values):
        return passed < _WIDE
    return passed < _EXACT and _apart(state[0], events.values) * SECOND < _EXACT


def _punctuation_begin(states: Sequence[State], dtype: Any) -> Arrays:
    return tuple(np.array(column, np.int64) for column in zip(*states, strict=True))


def _punctuation(
    state: Arrays, events: Events, size: int | None, age_us: int | None
) -> NullableColumn:
    number, count, began = state
    over = np.zeros(len(count), np.bool_)
    if size is not None:
        over |= count >= size
    if age_us is not None:
        over |= (count > 0) & (events.times - began > age_us)
    _close(number, count, over)
    np.copyto(began, events.times, where=count == 0)
    np.add(count, 1, out=count)
    made = NullableColumn(number.copy(), np.ones(len(number), np.bool_))
    _close(number, count, events.values & events.known)
    return made


def _close(number: Array, count: Array, over: Array) -> None:
    np.add(number, over, out=number)
    np.copyto(count, 0, where=over)


def _punctuation_end(number: Array, count: Array, began: Array) -> list[State]:
    return list(map(list, zip(number.tolist(), count.tolist(), began.tolist(), strict=True)))


def _punctuation_fits(state: Arrays, events: Events) -> bool:
    return _apart(state[2], events.times) < _WIDE


_VALUE: Any = {"begin": _value_begin, "end": _value_end}
_NUMBER: Any = {"begin": _number_begin, "end": _number_end}

VECTOR_STEPS: dict[str, VectorStep] = {
    "row_number": VectorStep(advance=_row_number, **_NUMBER),
    "ordinal": VectorStep(advance=_ordinal, **_NUMBER),
    "count": VectorStep(advance=_count, **_NUMBER),
    "sum": VectorStep(advance=_sum, computes=_wide, fits=_sum_fits, **_VALUE),
    "avg": VectorStep(_avg_begin, _avg, _avg_end, computes=_wide, fits=_avg_fits),
    "min": VectorStep(advance=_least, **_VALUE),
    "max": VectorStep(advance=_greatest, **_VALUE),
    "lag": VectorStep(advance=_lag, **_VALUE),
    "last_known": VectorStep(advance=_last_known, **_VALUE),
    "ewma": VectorStep(advance=_ewma, computes=_double, **_VALUE),
    "delta": VectorStep(advance=_delta, computes=_wide, fits=_delta_fits, **_VALUE),
    "rate": VectorStep(_rate_begin, _rate, _rate_end, computes=_wide, fits=_rate_fits),
    "punctuation": VectorStep(
        _punctuation_begin,
        _punctuation,
        _punctuation_end,
        takes=(pa.bool_(),),
        fits=_punctuation_fits,
    ),
}
