"""One step over the runs of a batch: in rounds where it has a vector form, and else run by run.

A run may be cut anywhere (headrace/core/steps.py), so its first events may be taken in rounds and
the others by `run`, which continues from the state that the rounds have left.
tests/carry/test_vector_steps.py checks that it makes no difference which of the two takes an event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.carry.decimals import with_decimals
from headrace.carry.rounds import Rounds
from headrace.carry.vector_steps import NUMBERS, VECTOR_STEPS, Arrays, Events, VectorStep, column_of
from headrace.compile.plan import StepPlan
from headrace.core.steps import CarriedStep, State


@dataclass(frozen=True, slots=True)
class StepRuns:
    """The input of a step: the times of all events, its columns, and the type of its values."""

    plan: StepPlan
    step: CarriedStep
    rounds: Rounds
    times: NDArray[np.int64]
    columns: Sequence[pa.Array]
    type: pa.DataType

    def run(self, states: Sequence[State]) -> tuple[list[State], pa.Array]:
        """The states of the runs after their events, and a value for each event."""
        order = self.rounds.order.tolist()
        after = [states[run] for run in order]  # of the runs in this order
        if any(pa.types.is_decimal(column.type) for column in self.columns):
            after = list(map(with_decimals, after))
        vector = VECTOR_STEPS.get(self.plan.step)
        begun = self.begun(vector, after) if vector and self.rounds.counts else None
        values = (
            self.in_rounds(vector, *begun, after) if vector and begun else self.one_by_one(after)
        )
        return [after[place] for place in np.argsort(self.rounds.order).tolist()], values

    def begun(self, vector: VectorStep, states: Sequence[State]) -> tuple[Events, Arrays] | None:
        """The events and states as columns, if the vector form computes as `run` does."""
        if self.type not in NUMBERS or any(c.type not in vector.takes for c in self.columns):
            return None
        events = self.events(vector)
        try:
            state = vector.begin(states, events.values.dtype)
        except (TypeError, ValueError, OverflowError):  # a total outside of BIGINT is a text
            return None
        return (events, state) if vector.fits(state, events) else None

    def events(self, vector: VectorStep) -> Events:
        if not self.columns:
            count = len(self.times)
            return Events(self.times, np.zeros(count, np.int64), np.ones(count, np.bool_))
        values, known = column_of(self.columns[0])
        return Events(self.times, values.astype(vector.computes(values.dtype), copy=False), known)

    def in_rounds(
        self, vector: VectorStep, events: Events, state: Arrays, after: list[State]
    ) -> pa.Array:
        values = np.zeros(len(self.times), self.type.to_pandas_dtype())
        known = np.zeros(len(self.times), np.bool_)
        with np.errstate(all="ignore"):
            for rows in self.rounds:
                part = tuple(each[: len(rows)] for each in state)
                taken = Events(*(each[rows] for each in events))
                values[rows], known[rows] = vector.advance(part, taken, *self.plan.parameters)
        after[:] = vector.end(*state)
        for place, lower, upper in self.rounds.left():
            after[place], more = self.take(after[place], lower, upper)
            values[lower:upper], known[lower:upper] = column_of(pa.array(more, self.type))
        return pa.array(values, self.type, mask=~known)

    def one_by_one(self, after: list[State]) -> pa.Array:
        values: list[Any] = [None] * len(self.times)
        moments, columns = self.times.tolist(), [column.to_pylist() for column in self.columns]
        for place, lower, upper in self.rounds.all():
            given = [column[lower:upper] for column in columns]
            after[place], values[lower:upper] = self.step.run(
                after[place], moments[lower:upper], *given, *self.plan.parameters
            )
        if pa.types.is_boolean(self.type):
            values = [None if value is None else bool(value) for value in values]
        return pa.array(values, self.type)

    def take(self, state: State, lower: int, upper: int) -> tuple[State, list[Any]]:
        """A part of a run, by the step's `run`."""
        given = [column[lower:upper].to_pylist() for column in self.columns]
        return self.step.run(state, self.times[lower:upper].tolist(), *given, *self.plan.parameters)
