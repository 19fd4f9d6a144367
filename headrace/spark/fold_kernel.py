"""The fold of a carried view without Spark SQL: Spark brings the events of each key to one task,
and the tasks do the rest.

A task of the first stage reads its part, makes the rows of the fold, and cuts them into buckets by
key. Each bucket is one record of Arrow's IPC format, so the shuffle moves a few large records and
not rows. A task of the second stage has one bucket: it sorts the rows by key and order, folds them,
and computes the partials of the rows that come out. Few events take one task and no shuffle.
tests/spark/test_fold_kernel.py compares the results with those of Spark SQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.carry.process import PLACE, Marks
from headrace.compile.plan import CarryPlan, FoldInputPlan, ViewPlan
from headrace.core.event import CUT, DISORDERED, KEY, SEQ, STATE, TIME, TIMER
from headrace.core.schema import Type
from headrace.define.processors import ProcessorDefinition
from headrace.kernel.engine import run_kernel
from headrace.kernel.partials import KernelJob, run_queries, without_zone
from headrace.log.columns import arrow_type
from headrace.master.parquet import verify_files
from headrace.master.part import MasterPart
from headrace.serving.store import StateRow, Store, Version
from headrace.spark.carry import FoldBatches, FoldResult, folder_of, states_before, states_table

FEW_EVENTS, BUCKET_EVENTS = 50_000, 500_000
BATCH_ROWS = 65_536
_BUCKET = "_bucket"
_ENDS = (KEY, TIME, SEQ, STATE, TIMER, DISORDERED, CUT)
Part: TypeAlias = MasterPart | Any  # events, or a table of the states before them


@dataclass(frozen=True, slots=True)
class FoldTask:
    """What the tasks of a fold share; it travels to the executors."""

    stream: str
    plan: FoldInputPlan
    relation: str  # the name of the rows that the fold takes, and of those that it gives
    buckets: int
    live: str  # SQL of the keys that are folded; empty for all
    fold: FoldBatches
    schema: pa.Schema
    queries: Mapping[str, str]  # over the rows that the fold gives
    tables: Mapping[str, Any]  # broadcast

    def packed(self, part: Part) -> Iterator[tuple[int, bytes]]:
        """The rows of a part, by bucket."""
        for rows in self.rows(part):
            numbers = rows[_BUCKET].to_numpy()
            ends = np.searchsorted(numbers, np.arange(self.buckets + 1))
            for number in np.flatnonzero(np.diff(ends)).tolist():
                lower, upper = ends[number], ends[number + 1]
                yield number, _to_bytes(rows.slice(lower, upper - lower))

    def rows(self, part: Part) -> Iterator[pa.Table]:
        """The rows of the fold in the order of their buckets."""
        if isinstance(part, pa.Table):
            yield run_kernel(self._in_buckets("SELECT * FROM states"), {"states": part})
            return
        # A build has no groups of epochs.
        sql = f"SELECT *, CAST(0 AS INTEGER) AS {CUT} FROM ({self.plan.sql})"
        tables = {name: sent.value for name, sent in self.tables.items()}
        for events in part.tables():
            relations = {self.stream: without_zone(events), **tables}
            yield run_kernel(self._in_buckets(sql), relations)

    def _in_buckets(self, sql: str) -> str:
        if self.buckets == 1:
            return sql
        number = f"CAST(hash({KEY}) % {self.buckets} AS INTEGER)"
        return f"SELECT *, {number} AS {_BUCKET} FROM ({sql}) ORDER BY {_BUCKET}"

    def folded(self, tables: Iterable[pa.Table]) -> tuple[pa.Table, dict[str, pa.Table]]:
        """The rows that end the keys of a bucket, and the results of the queries."""
        batches = self._sorted(tables).to_batches(max_chunksize=BATCH_ROWS)
        rows = pa.Table.from_batches(self.fold(iter(batches)), self.schema)
        ended = rows[STATE].is_valid()
        job = KernelJob(self.relation, self.queries)
        results = run_queries(job, without_zone(rows.filter(pc.invert(ended))))
        return rows.filter(ended).select(_ENDS), results

    def _sorted(self, tables: Iterable[pa.Table]) -> pa.Table:
        """Events and states in their declared types, each key's state before its events."""
        each = list(tables)
        states = [table for table in each if STATE in table.column_names]
        events = [table for table in each if STATE not in table.column_names]
        given = {
            self.relation: pa.concat_tables([_empty(self.plan), *events]),
            "states": pa.concat_tables([states_table(()), *states]),
        }
        kept = f"WHERE {KEY} IN (SELECT {KEY} FROM states UNION ALL {self.live})"
        rows = run_kernel(
            f"""
            SELECT * FROM (
              SELECT * FROM "{self.relation}" {kept if self.live else ""}
              UNION ALL BY NAME SELECT * FROM states
            ) ORDER BY hash({KEY}), {KEY}, {STATE} IS NULL, {TIME}, {SEQ}
            """,
            given,
        )
        return rows.cast(pa.schema(_taken(self.plan)))


class KernelFold:
    """The fold of a carried view's archived events, of which there are about `count`.

    `marks` and `since_us` are as for `CarryJob`.
    """

    def __init__(
        self,
        spark: Any,
        stream: str,
        view: ViewPlan,
        parts: Sequence[MasterPart],
        tables: Mapping[str, Any],
        processors: Mapping[str, ProcessorDefinition],
        count: int,
        marks: Marks,
        since_us: int | None,
    ) -> None:
        self.context, self.parts, self.count, self.marks = spark.sparkContext, parts, count, marks
        assert view.carry is not None
        assert view.kernel.fold is not None
        plan, schema = view.kernel.fold, _schema(view.carry, view.kernel.fold)
        self.task = FoldTask(
            stream,
            plan,
            view.carry.name,
            buckets=self._buckets(),
            live=_live(view.carry, plan, marks, since_us),
            fold=folder_of(view.carry, processors, marks, since_us, schema),
            schema=schema,
            queries={"": view.kernel.sql, **dict(view.kernel.values)},
            tables=tables,
        )

    def states(self, store: Store, version: Version) -> list[StateRow]:
        """The states before these events, at the boundary."""
        given = (self.count, self.keys, self.marks)
        return states_before(store, version, *given, at_boundary=True)

    def keys(self) -> list[str]:
        """The keys that have events here."""
        task = replace(self.task, buckets=1)

        def run(part: MasterPart) -> set[str]:
            return {key for rows in task.rows(part) for key in rows[KEY].unique().to_pylist()}

        found = self.context.parallelize(self.parts, len(self.parts)).map(run).collect()
        return sorted(set[str]().union(*found))

    def fold(self, states: Sequence[StateRow]) -> tuple[FoldResult, dict[str, pa.Table]]:
        """The result of the fold, and of the queries by name."""
        parts = [*self.parts, *([states_table(states)] if states else [])]
        try:
            found = self._in_one_task(parts) if self.task.buckets == 1 else self._shuffled(parts)
        except Exception:
            # A damaged file is named by its own error, and not by that of a task.
            verify_files(file for part in self.parts for file in part.files)
            raise
        results = {
            name: pa.concat_tables([each[name] for _, each in found]) for name in self.task.queries
        }
        return FoldResult.of(pa.concat_tables([ends for ends, _ in found])), results

    def _in_one_task(self, parts: Sequence[Part]) -> list[tuple[pa.Table, dict[str, pa.Table]]]:
        task = self.task

        def run(parts: Sequence[Part]) -> tuple[pa.Table, dict[str, pa.Table]]:
            return task.folded(rows for part in parts for rows in task.rows(part))

        return list(self.context.parallelize([parts], 1).map(run).collect())

    def _shuffled(self, parts: Sequence[Part]) -> list[tuple[pa.Table, dict[str, pa.Table]]]:
        task = self.task

        def run(records: Iterable[tuple[int, bytes]]) -> Iterator[Any]:
            yield task.folded(_from_bytes(packed) for _, packed in records)

        packed = self.context.parallelize(parts, len(parts)).flatMap(task.packed)
        return list(packed.partitionBy(task.buckets, int).mapPartitions(run).collect())

    def _buckets(self) -> int:
        """The number of tasks of the second stage."""
        if self.count <= FEW_EVENTS:
            return 1
        return max(int(self.context.defaultParallelism), 2, -(-self.count // BUCKET_EVENTS))


def _live(carry: CarryPlan, plan: FoldInputPlan, marks: Marks, since_us: int | None) -> str:
    """SQL of the keys in which a match may begin, as `CarryJob` has it."""
    _, mark_us = marks[-1] if marks else (0, None)
    if not plan.starts or mark_us is None:
        return ""
    late = f" OR {TIME} < {since_us}" if since_us is not None else ""
    others = f'SELECT {KEY} FROM "{carry.name}" WHERE {TIME} >= {mark_us}{late}'
    return f"{plan.starts} UNION ALL {others}"


def _schema(carry: CarryPlan, plan: FoldInputPlan) -> pa.Schema:
    """The columns of the rows that come out: those passed through, and those that are computed."""
    passed, made = _taken(plan), carry.made
    if made is not None:
        kept = {*PLACE, KEY, TIME, SEQ, STATE, CUT}
        passed = [field for field in passed if field.name in kept]
    added = _fields(made or [(step.output, step.type) for step in carry.steps])
    last = [pa.field(TIMER, pa.int64()), pa.field(DISORDERED, pa.bool_())]
    return pa.schema([*passed, *added, *last])


def _taken(plan: FoldInputPlan) -> list[pa.Field]:
    """The columns of the rows that a fold takes."""
    return [*_fields(plan.columns), pa.field(CUT, pa.int32()), pa.field(STATE, pa.binary())]


def _fields(columns: Iterable[tuple[str, str]]) -> list[pa.Field]:
    """Columns of these Spark types."""
    return [pa.field(name, arrow_type(Type.parse(type))) for name, type in columns]


def _empty(plan: FoldInputPlan) -> pa.Table:
    """No rows of a fold, as the kernel has them."""
    fields = [field for field in _taken(plan) if field.name != STATE]
    return without_zone(pa.schema(fields).empty_table())


def _to_bytes(table: pa.Table) -> bytes:
    rows, sink = table.drop_columns([_BUCKET]), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def _from_bytes(packed: bytes) -> pa.Table:
    return pa.ipc.open_stream(packed).read_all()
