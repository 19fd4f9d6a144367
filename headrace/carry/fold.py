"""The fold: batches of rows sorted by key and order in, the same rows with the steps' values out.

A row with `_state` has the state of a key after its earlier events: it is the first of the rows of
its key. After the events of a key comes one such row, with the state that the next fold starts
from. A key whose first event is dated before its state's last one is out of order: the steps
continue all the same, and the row that ends the key says so (`_disordered`). `_cut` of an event is
the group that it came in; a row that ends a key has the newest group after which an event of an
older one stands in the order. tests/carry/test_fold.py checks that a fold may be cut anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from headrace.carry.ends import KeyEndRows
from headrace.carry.runs import runs
from headrace.compile.plan import StepPlan
from headrace.core.event import CUT, KEY, SEQ, STATE, TIME
from headrace.core.steps import CarriedStep, step_named

ENDS_MAX = 20_000


def fold(
    batches: Iterable[pa.RecordBatch], plans: Sequence[StepPlan], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Carry `plans` through the batches; `schema` is that of the rows that come out."""
    folding = _Folding([(plan, step_named(plan.step)) for plan in plans], schema)
    for batch in batches:
        yield from folding.take(batch)
    yield from folding.end()


class _Folding:
    """A single pass through sorted rows; it holds the state of the key it is at."""

    def __init__(self, steps: list[tuple[StepPlan, CarriedStep]], schema: pa.Schema) -> None:
        self.steps, self.schema = steps, schema
        self.ends = KeyEndRows()
        self.key: str | None = None
        self.states: list[Any] = []
        self.last: tuple[int, int] | None = None
        self.disordered = self.took = False
        self.cut: int | None = None
        self.disordered_cut: int | None = None

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        rows = pa.Table.from_batches([batch])
        begun = rows[STATE].to_pylist() if rows[STATE].null_count < len(rows) else None
        times, seqs = rows[TIME].to_pylist(), rows[SEQ].to_pylist()
        inputs = [[rows[c].to_pylist() for c in plan.columns] for plan, _ in self.steps]
        outputs: list[list[Any]] = [[] for _ in self.steps]
        cuts = rows[CUT].to_pylist()
        mixed = pc.count_distinct(rows[CUT]).as_py() > 1
        for key, lower, upper in runs(batch[KEY]):
            if key != self.key:
                self.begin(key)
            if begun is not None and begun[lower] is not None:
                self.states = msgspec.msgpack.decode(begun[lower])
                self.last = (times[lower], seqs[lower])
                lower += 1
            if lower < upper:
                self.run(times, seqs, inputs, outputs, lower, upper)
                self.compare(cuts[lower:upper] if mixed else cuts[lower : lower + 1])
        events = rows.filter(pc.is_null(rows[STATE])) if begun is not None else rows
        if len(events):
            yield self.shaped(events, outputs)
        if len(self.ends) >= ENDS_MAX:
            yield self.ends.batch(self.schema)
            self.ends = KeyEndRows()

    def run(
        self,
        times: list[int],
        seqs: list[int],
        inputs: list[list[list[Any]]],
        outputs: list[list[Any]],
        lower: int,
        upper: int,
    ) -> None:
        """Take the events [lower, upper), all of the present key."""
        self.took = True
        if self.last is not None and (times[lower], seqs[lower]) < self.last:
            self.disordered = True
        moments = times[lower:upper]
        for n, (plan, step) in enumerate(self.steps):
            columns = [column[lower:upper] for column in inputs[n]]
            self.states[n], values = step.run(self.states[n], moments, *columns, *plan.parameters)
            outputs[n] += values
        newest = (times[upper - 1], seqs[upper - 1])
        self.last = newest if self.last is None else max(self.last, newest)

    def compare(self, cuts: list[int]) -> None:
        """Note where an event of an older group stands after one of a newer."""
        for cut in cuts:
            if self.cut is not None and cut < self.cut:
                self.disordered_cut = self.cut
            self.cut = cut if self.cut is None else max(cut, self.cut)

    def begin(self, key: str) -> None:
        self.end_key()
        self.key, self.last, self.disordered = key, None, False
        self.cut = self.disordered_cut = None
        self.states, self.took = [step.zero for _, step in self.steps], False

    def end_key(self) -> None:
        if self.key is None or self.last is None or not self.took:
            return
        state = msgspec.msgpack.encode(self.states)
        self.ends.add(self.key, self.last, state, None, self.disordered, self.disordered_cut)

    def end(self) -> Iterator[pa.RecordBatch]:
        self.end_key()
        if len(self.ends):
            yield self.ends.batch(self.schema)

    def shaped(self, events: pa.Table, outputs: list[list[Any]]) -> pa.RecordBatch:
        made = {
            plan.output: _typed(values, self.schema.field(plan.output).type)
            for (plan, _), values in zip(self.steps, outputs, strict=True)
        }
        arrays = []
        for f in self.schema:
            if f.name in made:
                arrays.append(made[f.name])
            elif f.name in events.column_names:
                arrays.append(events[f.name].combine_chunks().cast(f.type))
            else:
                arrays.append(pa.nulls(len(events), f.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _typed(values: list[Any], type: pa.DataType) -> pa.Array:
    if pa.types.is_boolean(type):
        values = [None if value is None else bool(value) for value in values]
    return pa.array(values, type)
