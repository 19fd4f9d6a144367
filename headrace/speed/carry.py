"""A carried view in an epoch: its events are folded onto the states of their keys.

If an event comes out of order, the view is folded again from the boundary, over all that speed has
taken since, and what comes out replaces speed's rows (it is rebased). What even then is dated
before the generation's last event of its key is left to batch: the rows are provisional until then,
and so they are while too many events lie between to fold them again. tests/serving/test_carried.py
checks when rows fit; tests/transcripts that the answer is the reference's.
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
from headrace.spark.carry import Carrying

Read = Callable[[Any, PositionRange, Times], Any]


@dataclass(frozen=True, slots=True)
class Behind:
    """What lies behind an epoch: the store's states, and the log since the boundary."""

    store: Store
    state: StreamState
    read: Read  # the frame of a range of the log, in a session of Spark
    rebase_events_max: int
    processors: Mapping[str, ProcessorDefinition]

    def since_us(self, *, at_boundary: bool) -> int | None:
        """The watermark that the states have come to."""
        return (self.state.built if at_boundary else self.state.reached).marks[0]

    def marks(self) -> list[tuple[int, int | None]]:
        """The watermark at the end of each group after the boundary."""
        groups = self.store.groups(self.state.plan.name)
        return [(group.number, group.reached.marks[0]) for group in groups]

    def cut(self) -> str:
        """SQL for the group that an event after the boundary is in."""
        cases = [
            f"WHEN {_before(group.reached.position)} THEN {group.number}"
            for group in self.store.groups(self.state.plan.name)
        ]
        return f"CASE {' '.join(cases)} ELSE {NOW} END" if cases else str(NOW)


@dataclass(frozen=True, slots=True)
class CarriedRows:
    """A carried view's part of an epoch; `again` asks for a fold from the boundary."""

    rows: pa.Table
    epoch: CarriedEpoch
    again: bool = False


def follow(
    spark: Any,
    version: Version,
    carry: CarryPlan,
    behind: Behind,
    watermark: int | None,
    events: int,
) -> CarriedRows:
    """Fold the epoch's events onto the states at speed's position."""
    if not version.live or behind.store.needs_rebase(version):
        # Without a generation, or beside one that does not fit, there is nothing to go on from.
        waits = CarriedEpoch([], disorder=NOW, provisional=True)
        return CarriedRows(pa.table({}), waits, again=True)
    marks, since_us = [(NOW, watermark)], behind.since_us(at_boundary=False)
    carrying = Carrying(spark, carry, behind.processors, events, str(NOW), marks, since_us)
    folded = carrying.fold(carrying.states(behind.store, version, at_boundary=False))
    rows = spark.sql(version.plan.partial_sql).toArrow()
    disorder = NOW if folded.disordered else None
    carried = CarriedEpoch(folded.states, disorder=disorder, provisional=folded.disordered)
    return CarriedRows(rows, carried, again=folded.disordered)


def rebase(
    spark: Any,
    version: Version,
    carry: CarryPlan,
    behind: Behind,
    watermark: int | None,
    events: int,
) -> CarriedRows:
    """Fold all events since the boundary; the stream's relation holds them."""
    marks, since_us = [*behind.marks(), (NOW, watermark)], behind.since_us(at_boundary=True)
    carrying = Carrying(spark, carry, behind.processors, events, behind.cut(), marks, since_us)
    folded = carrying.fold(carrying.states(behind.store, version, at_boundary=True))
    rows = spark.sql(version.plan.partial_sql).toArrow()
    disorder = NOW if folded.disordered else folded.disordered_cut
    return CarriedRows(rows, CarriedEpoch(folded.states, True, disorder, folded.disordered))


def _before(upper: Position) -> str:
    cases = " ".join(f"WHEN {n} THEN {offset}" for n, offset in enumerate(upper.offsets))
    return f"{OFFSET} < CASE {PARTITION} {cases} END"
