"""An epoch of a carried view: its events are folded onto the states of their keys.

After an out-of-order event the view is rebased: all events since the boundary are folded again, and
the result replaces speed's rows. An event that is older than the generation's last event of its key
needs batch; until the next build the rows are provisional, as they are when more than
`rebase_events_max` events would have to be folded again. tests/serving/test_carried.py checks when
rows are valid; tests/transcripts that the answer is the reference's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headrace.compile.plan import CarryPlan
from headrace.core.event import OFFSET, PARTITION
from headrace.core.position import Position, PositionRange
from headrace.define.processors import ProcessorDefinition
from headrace.serving.store import (
    NOW,
    CarriedEpoch,
    Store,
    StreamState,
    Version,
)
from headrace.serving.watermark import Times
from headrace.spark.carry import CarryJob

Read = Callable[[Any, PositionRange, Times], Any]


@dataclass(frozen=True, slots=True)
class EpochContext:
    """What an epoch reads besides its events: the store, and the log since the boundary."""

    store: Store
    state: StreamState
    read: Read  # gives the DataFrame of a range of the log
    rebase_events_max: int
    processors: Mapping[str, ProcessorDefinition]

    def since_us(self, *, at_boundary: bool) -> int | None:
        """The watermark of the states."""
        return (self.state.built if at_boundary else self.state.reached).marks[0]

    def group_watermarks(self) -> list[tuple[int, int | None]]:
        """The watermark at the end of each group after the boundary."""
        groups = self.store.groups(self.state.plan.name)
        return [(group.number, group.reached.marks[0]) for group in groups]

    def group_sql(self) -> str:
        """SQL for the group of an event after the boundary."""
        cases = [
            f"WHEN {_before(group.reached.position)} THEN {group.number}"
            for group in self.store.groups(self.state.plan.name)
        ]
        return f"CASE {' '.join(cases)} ELSE {NOW} END" if cases else str(NOW)


@dataclass(frozen=True, slots=True)
class CarriedRows:
    """A carried view's part of an epoch; `rebase` if it must be folded again from the boundary."""

    rows: pa.Table
    epoch: CarriedEpoch
    rebase: bool = False


def fold_epoch(
    spark: Any,
    version: Version,
    carry: CarryPlan,
    context: EpochContext,
    watermark: int | None,
    events: int,
) -> CarriedRows:
    """Fold the epoch's events onto the states at speed's position."""
    if not version.live or context.store.needs_rebase(version):
        # There are no valid states: no generation yet, or one of another fold.
        empty = CarriedEpoch([], disorder=NOW, provisional=True)
        return CarriedRows(pa.table({}), empty, rebase=True)
    marks, since_us = [(NOW, watermark)], context.since_us(at_boundary=False)
    job = CarryJob(spark, carry, context.processors, events, str(NOW), marks, since_us)
    folded = job.fold(job.states(context.store, version, at_boundary=False))
    rows = spark.sql(version.plan.partial_sql).toArrow()
    disorder = NOW if folded.disordered else None
    carried = CarriedEpoch(folded.states, disorder=disorder, provisional=folded.disordered)
    return CarriedRows(rows, carried, rebase=folded.disordered)


def rebase(
    spark: Any,
    version: Version,
    carry: CarryPlan,
    context: EpochContext,
    watermark: int | None,
    events: int,
) -> CarriedRows:
    """Fold all events since the boundary, which are in the stream's relation."""
    marks = [*context.group_watermarks(), (NOW, watermark)]
    since_us, group = context.since_us(at_boundary=True), context.group_sql()
    job = CarryJob(spark, carry, context.processors, events, group, marks, since_us)
    folded = job.fold(job.states(context.store, version, at_boundary=True))
    rows = spark.sql(version.plan.partial_sql).toArrow()
    disorder = NOW if folded.disordered else folded.disordered_cut
    return CarriedRows(rows, CarriedEpoch(folded.states, True, disorder, folded.disordered))


def _before(upper: Position) -> str:
    cases = " ".join(f"WHEN {n} THEN {offset}" for n, offset in enumerate(upper.offsets))
    return f"{OFFSET} < CASE {PARTITION} {cases} END"
