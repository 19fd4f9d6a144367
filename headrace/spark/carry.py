"""Carried steps on Spark: events and the states before them, brought together by key and folded.

The rows of a key meet in one task, its state first, then its events in order. What comes out is a
relation of the events with the steps' columns, for the view's SQL to read, and the states after
them. tests/spark/test_carry.py runs it; tests/transcripts compares it with the reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headrace.carry.fold import DISORDERED, STATE, fold
from headrace.compile.plan import CarryPlan
from headrace.core.event import CUT, KEY, SEQ, TIME
from headrace.serving.store import StateRow

_STATES = pa.schema(
    [(KEY, pa.string()), (TIME, pa.int64()), (SEQ, pa.int64()), (STATE, pa.binary())]
)


@dataclass(frozen=True, slots=True)
class Folded:
    """What a fold has made: the relation is registered under the plan's name until `drop`."""

    frame: Any
    states: list[StateRow]
    disordered: bool  # an event is dated before what its key's state had taken
    disordered_cut: int | None  # the newest group with an event after which an older group's comes

    def drop(self) -> None:
        self.frame.unpersist()


class Carrying:
    """A carried view's events of one epoch or build, before they are folded.

    `cut` is SQL for the group that an event belongs to.
    """

    def __init__(self, spark: Any, plan: CarryPlan, cut: str = "0") -> None:
        self.spark, self.plan = spark, plan
        self.events = spark.sql(plan.sql).selectExpr("*", f"cast({cut} as int) AS {CUT}")

    def keys(self) -> list[str]:
        """The keys that have events here."""
        found: list[str] = self.events.select(KEY).distinct().toArrow()[KEY].to_pylist()
        return found

    def fold(self, states: Sequence[StateRow]) -> Folded:
        frame = _folded(self._with(states), self.plan).persist()
        made = frame.where(f"{STATE} IS NOT NULL")
        ends = made.select(KEY, TIME, SEQ, STATE, DISORDERED, CUT).toArrow()
        frame.where(f"{STATE} IS NULL").createOrReplaceTempView(f"`{self.plan.name}`")
        columns = [ends[name].to_pylist() for name in (KEY, TIME, SEQ, STATE)]
        cuts = [cut for cut in ends[CUT].to_pylist() if cut is not None]
        return Folded(
            frame,
            list(zip(*columns, strict=True)),
            any(ends[DISORDERED].to_pylist()),
            max(cuts, default=None),
        )

    def _with(self, states: Sequence[StateRow]) -> Any:
        """Events and states in one frame, sorted within each task."""
        from pyspark.sql.functions import col

        rows = zip(*states, strict=True) if states else ([], [], [], [])
        before = self.spark.createDataFrame(
            pa.table(
                [pa.array(column, f.type) for column, f in zip(rows, _STATES, strict=True)], _STATES
            )
        )
        both = self.events.unionByName(before, allowMissingColumns=True)
        order = (col(KEY), col(STATE).isNull(), col(TIME), col(SEQ))
        return both.repartition(KEY).sortWithinPartitions(*order)


def _folded(sorted_rows: Any, plan: CarryPlan) -> Any:
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import BooleanType, StructType, _parse_datatype_string

    fields = list(sorted_rows.schema.fields)
    for step in plan.steps:
        fields += _parse_datatype_string(f"{step.output} {step.type}").fields
    schema = StructType(fields).add(DISORDERED, BooleanType())
    for each in schema.fields:
        each.nullable = True
    arrow, steps = to_arrow_schema(schema, timezone="UTC"), plan.steps

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return fold(batches, steps, arrow)

    return sorted_rows.mapInArrow(run, schema)
