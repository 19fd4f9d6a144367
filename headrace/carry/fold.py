"""The fold: batches of rows sorted by key and order in, the same rows with the steps' values out.

A row with `_state` has the state of a key after its earlier events: it is the first of the rows of
its key. After the events of a key comes one such row, with the state that the next fold starts
from. A key whose first event is dated before its state's last one is out of order: the steps
continue all the same, and the row that ends the key says so (`_disordered`). `_cut` of an event is
the group that it came in; a row that ends a key has the newest group after which an event of an
older one stands in the order. All keys of a batch are folded together, as columns.
tests/carry/test_fold.py checks that a fold may be cut anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.carry.ends import KeyEndRows
from headrace.carry.rounds import Rounds
from headrace.carry.runs import EventRuns
from headrace.carry.step_runs import StepRuns
from headrace.compile.plan import StepPlan
from headrace.core.event import CUT, KEY, SEQ, STATE, TIME
from headrace.core.steps import CarriedStep, State, step_named

ENDS_MAX = 20_000


def fold(
    batches: Iterable[pa.RecordBatch], plans: Sequence[StepPlan], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Carry `plans` through the batches; `schema` is that of the rows that come out."""
    folding = _Folding([(plan, step_named(plan.step)) for plan in plans], schema)
    for batch in batches:
        yield from folding.take(batch)
    yield from folding.end()


# What is known of a key: the place of its newest event, if `begun`; whether the fold `took` events,
# and one that was out of order; the newest group so far, and the newest one with an older event
# after it (NO_GROUP: none).
_FACTS = np.dtype(
    [
        ("begun", np.bool_), ("time", np.int64), ("seq", np.int64), ("took", np.bool_),
        ("disordered", np.bool_), ("cut", np.int64), ("disordered_cut", np.int64),
    ]
)  # fmt: skip
_NO_GROUP = -1


@dataclass(slots=True)
class _Keys:
    """Keys in order, each with the states of the steps and the facts."""

    names: list[str]
    states: list[Sequence[State]]
    facts: NDArray[Any]


class _Folding:
    """A single pass through sorted rows. More rows of the last key may come: it is open."""

    def __init__(self, steps: list[tuple[StepPlan, CarriedStep]], schema: pa.Schema) -> None:
        self.steps, self.schema = steps, schema
        self.zeros = [step.zero for _, step in steps]
        self.ends = KeyEndRows()
        self.open = _Keys([], [], np.zeros(0, _FACTS))

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if not len(batch):
            return
        is_state = np.asarray(batch[STATE].is_valid())
        runs = EventRuns.of(batch[KEY], is_state)
        events = batch.filter(pa.array(~is_state)) if is_state.any() else batch
        keys = self.begun(batch, runs)
        if len(events):
            _place(keys.facts, runs, events)
            _group(keys.facts, runs, np.asarray(events[CUT], np.int64))
            yield self.shaped(events, self.run(keys, runs, events))
        self.open = _Keys(keys.names[-1:], keys.states[-1:], keys.facts[-1:])
        self.end_keys(_Keys(keys.names[:-1], keys.states[:-1], keys.facts[:-1]))
        if len(self.ends) >= ENDS_MAX:
            yield self.ends.batch(self.schema)
            self.ends = KeyEndRows()

    def begun(self, batch: pa.RecordBatch, runs: EventRuns) -> _Keys:
        """The keys of the batch as they are before its events."""
        facts = np.zeros(len(runs), _FACTS)
        facts["cut"] = facts["disordered_cut"] = _NO_GROUP
        keys = _Keys(runs.keys, [self.zeros] * len(runs), facts)
        if self.open.names == keys.names[:1]:
            keys.states[:1], facts[:1] = self.open.states, self.open.facts
        else:
            self.end_keys(self.open)
        if len(runs.states):
            given = batch.take(pa.array(runs.states))
            for run, state in zip(
                np.flatnonzero(runs.stated).tolist(), given[STATE].to_pylist(), strict=True
            ):
                keys.states[run] = msgspec.msgpack.decode(state)
            facts["begun"] |= runs.stated
            facts["time"][runs.stated] = given[TIME].to_numpy()
            facts["seq"][runs.stated] = given[SEQ].to_numpy()
        return keys

    def run(self, keys: _Keys, runs: EventRuns, events: pa.RecordBatch) -> dict[str, pa.Array]:
        """The values of each step, by its output; the states of the keys become those after it."""
        rounds, times = Rounds(runs.lowers, runs.uppers), events[TIME].to_numpy()
        made, after = dict[str, pa.Array](), []
        for number, (plan, step) in enumerate(self.steps):
            columns, type = [events[c] for c in plan.columns], self.schema.field(plan.output).type
            states, made[plan.output] = StepRuns(plan, step, rounds, times, columns, type).run(
                [states[number] for states in keys.states]
            )
            after.append(states)
        keys.states = list(zip(*after, strict=True))
        return made

    def end_keys(self, keys: _Keys) -> None:
        facts = keys.facts[keys.facts["took"]]
        ended = [n for n, took in enumerate(keys.facts["took"].tolist()) if took]
        encode = msgspec.msgpack.Encoder().encode
        columns = (
            [keys.names[n] for n in ended],
            facts["time"].tolist(),
            facts["seq"].tolist(),
            [encode(keys.states[n]) for n in ended],
            [None] * len(ended),
            facts["disordered"].tolist(),
            [None if cut == _NO_GROUP else cut for cut in facts["disordered_cut"].tolist()],
        )
        self.ends.extend(zip(*columns, strict=True))

    def end(self) -> Iterator[pa.RecordBatch]:
        self.end_keys(self.open)
        if len(self.ends):
            yield self.ends.batch(self.schema)

    def shaped(self, events: pa.RecordBatch, made: dict[str, pa.Array]) -> pa.RecordBatch:
        arrays = []
        for f in self.schema:
            if f.name in made:
                arrays.append(made[f.name])
            elif f.name in events.schema.names:
                arrays.append(events[f.name].cast(f.type))
            else:
                arrays.append(pa.nulls(len(events), f.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _place(facts: NDArray[Any], runs: EventRuns, events: pa.RecordBatch) -> None:
    """Compare the first event of each run with the newest before it, and note the newest."""
    having = np.flatnonzero(runs.lowers < runs.uppers)
    times, seqs = events[TIME].to_numpy(), events[SEQ].to_numpy()
    first, last, before = runs.lowers[having], runs.uppers[having] - 1, facts[having]
    before["disordered"] |= before["begun"] & _precedes(
        times[first], seqs[first], before["time"], before["seq"]
    )
    newer = ~before["begun"] | _precedes(before["time"], before["seq"], times[last], seqs[last])
    np.copyto(before["time"], times[last], where=newer)
    np.copyto(before["seq"], seqs[last], where=newer)
    before["begun"] = before["took"] = True
    facts[having] = before


def _precedes(
    time: NDArray[Any], seq: NDArray[Any], other_time: NDArray[Any], other_seq: NDArray[Any]
) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (time < other_time) | ((time == other_time) & (seq < other_seq))
    return found


def _group(facts: NDArray[Any], runs: EventRuns, cuts: NDArray[np.int64]) -> None:
    """Note where an event of an older group stands after one of a newer."""
    having = runs.lowers < runs.uppers
    if (cuts == cuts[0]).all() and (facts["cut"] <= cuts[0]).all():
        facts["cut"][having] = cuts[0]  # as always, but in a rebase
        return
    for run in np.flatnonzero(having).tolist():
        newest, disordered = facts["cut"][run], facts["disordered_cut"][run]
        for cut in cuts[runs.lowers[run] : runs.uppers[run]].tolist():
            disordered = newest if cut < newest else disordered
            newest = max(cut, newest)
        facts["cut"][run], facts["disordered_cut"][run] = newest, disordered
