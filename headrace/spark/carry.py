"""Stateful folds on Spark: the events of each key, in order, after the state of the key.

All rows of a key are in one task: its state first, then its events in order. The result is a
relation of the events with the steps' columns, or of a processor's rows, which the view's SQL
reads, and the new states. tests/transcripts compares it with the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.carry.fold import fold
from headrace.carry.match import match
from headrace.carry.process import PLACE, Marks, process
from headrace.compile.plan import CarryPlan
from headrace.core.event import CUT, DISORDERED, KEY, SEQ, STATE, TIME, TIMER
from headrace.define.processors import ProcessorDefinition
from headrace.serving.store import StateRow, Store, Version
from headrace.spark.functions import pickle_by_value

_STATES = pa.schema(
    [(KEY, pa.string()), (TIME, pa.int64()), (SEQ, pa.int64()), (STATE, pa.binary())]
)
FoldBatches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
LIVE_MAX = 4_000_000  # this many keys fit into the memory of each task


@dataclass(frozen=True, slots=True)
class FoldResult:
    """The result of a fold, besides its rows."""

    states: list[StateRow]
    disordered: bool  # an event is older than the last event in its key's state
    disordered_cut: int | None  # the newest group with an event that precedes one of an older group

    @staticmethod
    def of(ends: pa.Table) -> FoldResult:
        """The result in the rows that end the keys."""
        columns = [ends[name].to_pylist() for name in (KEY, TIME, SEQ, STATE, TIMER)]
        cuts = [cut for cut in ends[CUT].to_pylist() if cut is not None]
        return FoldResult(
            list(zip(*columns, strict=True)),
            any(ends[DISORDERED].to_pylist()),
            max(cuts, default=None),
        )


def states_before(
    store: Store,
    version: Version,
    count: int,
    keys: Callable[[], list[str]],
    marks: Marks,
    *,
    at_boundary: bool,
) -> list[StateRow]:
    """The states before about `count` events of these keys."""
    due_us = marks[-1][1] if marks else None
    # Reading some unneeded states costs less than collecting the keys.
    wanted = None if store.states_count(version) <= count else keys()
    return store.states(version, wanted, due_us, at_boundary=at_boundary)


def states_table(states: Sequence[StateRow]) -> pa.Table:
    rows = [row[:4] for row in states]
    values = zip(*rows, strict=True) if rows else ([], [], [], [])
    columns = [pa.array(column, f.type) for column, f in zip(values, _STATES, strict=True)]
    return pa.table(columns, _STATES)


class CarryJob:
    """The fold of a carried view's events of one epoch or build.

    There are about `count` events. `cut` is SQL for the group of an event, `marks` the watermark at
    each group's end, `since_us` the watermark of the states; `ended`: no more events will come.
    """

    def __init__(
        self,
        spark: Any,
        plan: CarryPlan,
        processors: Mapping[str, ProcessorDefinition],
        count: int,
        cut: str = "0",
        marks: Marks = (),
        since_us: int | None = None,
        *,
        ended: bool = False,
    ) -> None:
        self.spark, self.plan, self.processors, self.count = spark, plan, processors, count
        self.marks, self.since_us, self.ended = marks, since_us, ended
        self.events = spark.sql(plan.sql).selectExpr("*", f"cast({cut} as int) AS {CUT}")

    def states(self, store: Store, version: Version, *, at_boundary: bool) -> list[StateRow]:
        """The states before these events."""
        given = (self.count, self.keys, self.marks)
        return states_before(store, version, *given, at_boundary=at_boundary)

    def keys(self) -> list[str]:
        """The keys that have events here."""
        # Deduplicating on the driver costs less than a shuffle.
        found: list[str] = pc.unique(self.events.select(KEY).toArrow()[KEY]).to_pylist()
        return found

    def fold(self, states: Sequence[StateRow]) -> FoldResult:
        # A checkpoint of rows: two small jobs read it once each, so a columnar cache costs more.
        frame = self._folded(self._with(states)).localCheckpoint(eager=False)
        made = frame.where(f"{STATE} IS NOT NULL")
        ends = made.select(KEY, TIME, SEQ, STATE, TIMER, DISORDERED, CUT).toArrow()
        frame.where(f"{STATE} IS NULL").createOrReplaceTempView(f"`{self.plan.name}`")
        return FoldResult.of(ends)

    def _with(self, states: Sequence[StateRow]) -> Any:
        """Events and states in one frame, sorted within each partition."""
        from pyspark.sql.functions import col

        before = self.spark.createDataFrame(states_table(states))
        both = self._live(before).unionByName(before, allowMissingColumns=True)
        order = (col(KEY), col(STATE).isNull(), col(TIME), col(SEQ))
        return both.repartition(KEY).sortWithinPartitions(*order)

    def _live(self, states: Any) -> Any:
        """The events without those of keys in which no match can begin: these need no Python."""
        from pyspark.sql.functions import broadcast, expr

        plan, (_, mark_us) = self.plan.match, self.marks[-1] if self.marks else (0, None)
        if plan is None or plan.starts is None or mark_us is None:
            return self.events
        # Events after the watermark are buffered until earlier ones arrive; late ones are reported.
        cases = [plan.starts, f"{TIME} >= {mark_us}"]
        cases += [f"{TIME} < {self.since_us}"] if self.since_us is not None else []
        keys = self.events.where(" OR ".join(cases)).select(KEY).union(states.select(KEY))
        # Hashes are faster to compare; a collision only adds some unneeded events.
        live = keys.select(expr(f"xxhash64({KEY}) AS _live")).distinct()
        if self.count > LIVE_MAX and live.limit(LIVE_MAX + 1).count() > LIVE_MAX:
            return self.events
        return self.events.join(broadcast(live), expr(f"xxhash64({KEY}) = _live"), "left_semi")

    def _folded(self, rows: Any) -> Any:
        from pyspark.sql.pandas.types import to_arrow_schema

        schema = self._schema(rows.schema)
        arrow = to_arrow_schema(schema, timezone="UTC")
        run = folder_of(
            self.plan, self.processors, self.marks, self.since_us, arrow, ended=self.ended
        )
        return rows.mapInArrow(run, schema)

    def _schema(self, rows: Any) -> Any:
        """The columns of the result: those passed through, and those computed by the fold."""
        from pyspark.sql.types import BooleanType, LongType, StructType, _parse_datatype_string

        fields = list(rows.fields)
        made = ", ".join(f"`{step.output}` {step.type}" for step in self.plan.steps)
        if self.plan.made is not None:
            kept = {*PLACE, KEY, TIME, SEQ, STATE, CUT}
            fields = [each for each in fields if each.name in kept]
            made = ", ".join(f"`{name}` {type}" for name, type in self.plan.made)
        fields += _parse_datatype_string(made).fields
        for each in fields:
            each.nullable = True
        return StructType(fields).add(TIMER, LongType()).add(DISORDERED, BooleanType())


def folder_of(
    plan: CarryPlan,
    processors: Mapping[str, ProcessorDefinition],
    marks: Marks,
    since_us: int | None,
    schema: pa.Schema,
    *,
    ended: bool = False,
) -> FoldBatches:
    """The fold of a plan, which travels to the tasks: rows sorted by key and order in, rows of the
    schema out.
    """
    steps = plan.steps
    if found := plan.match:
        return lambda batches: match(batches, found, marks, since_us, schema, ended=ended)
    if (made := plan.processor) is None:
        return lambda batches: fold(batches, steps, schema)
    definition = processors[made.name.lower()]
    pickle_by_value(definition.body.__module__)
    body, state = _unmarked(definition.body), definition.state
    return lambda batches: process(batches, made, body, state, marks, schema)


def _unmarked(body: type) -> type:
    """The class without our marker attribute, which would be pickled with it."""
    from headrace.define.processors import MARK

    skipped = {MARK, "__dict__", "__weakref__"}
    plain = {name: value for name, value in vars(body).items() if name not in skipped}
    return type(body.__name__, body.__bases__, {**plain, "__module__": body.__module__})
