"""One epoch: the events of a position range -> the partials of every view of the flow.

All views share one read of the range. The only state between two epochs is in the store and, for
joined streams, a cached history that can be read again, so an epoch can be recomputed at any time.
tests/laws/test_seam.py and tests/transcripts run epochs at every split.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from typing import Any, ParamSpec, TypeVar

import pyarrow as pa

from headrace.compile.flow import FlowPlan
from headrace.compile.plan import StreamPlan
from headrace.core.event import LATE, PARTITION, STATUS, EventStatus
from headrace.core.position import PositionRange
from headrace.core.shedding import Shedding
from headrace.core.spans import span
from headrace.kernel.partials import KernelJob, PartitionPartials
from headrace.serving.store import NOW, CarriedEpoch, Epoch, Version
from headrace.serving.watermark import FlowProgress, Times
from headrace.spark.feed import high_sql
from headrace.spark.join_parameters import watermark_parameters, with_new
from headrace.spark.relations import rows_of
from headrace.speed.carry import CarriedRows, EpochContext, fold_epoch, rebase
from headrace.speed.join_history import JoinHistory, history_starts
from headrace.speed.records import EpochRecords, unpack_streams

COUNTS = ("events", "late", "duplicates", "dead_letters")
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StreamCounts:
    """Counts and event times of one stream's part of an epoch."""

    counts: tuple[int, ...]
    highs: Times  # the highest event time of each partition after the epoch
    low: int | None  # the earliest event time of the epoch


def compute_epoch(
    records: EpochRecords,
    flow: FlowPlan,
    versions: list[Version],
    range: PositionRange,
    context: EpochContext,
    started_at: int,
    history: JoinHistory | None = None,
    shedding: Shedding | None = None,
    *,
    vectorised: bool = True,
) -> Epoch:
    """Partials and counts of the records of `range`, or of those that are not shed.

    A joined flow requires the history of its streams. Without `vectorised`, Spark SQL computes all
    views.
    """
    kernel = [version for version in versions if vectorised and version.plan.kernel.stateless]
    rest = [version for version in versions if version not in kernel]
    if kernel and not rest:
        found = records.partials(*_kernel_job(flow, kernel))
        computed = _by_kernel(found, flow, kernel, range, context, started_at)
    elif not kernel:
        computed = _by_spark(records, flow, rest, range, context, started_at, history)
    else:
        with ThreadPoolExecutor(max_workers=1) as pool:
            job = _submit(pool, "kernel", records.partials, *_kernel_job(flow, kernel))
            computed = _by_spark(records, flow, rest, range, context, started_at, history)
        computed.rows.update(_concatenated(job.result(), kernel))
    return Epoch(
        flow.name,
        context.state.generation,
        range.lower,
        computed.reached,
        dict(zip(COUNTS, computed.counts, strict=True)),
        computed.rows,
        started_at,
        _carried(computed.carried, shedding),
        computed.withdrawn,
        shedding,
    )


@dataclass(frozen=True, slots=True)
class _Computed:
    """What the records of an epoch give."""

    reached: FlowProgress
    counts: list[int]
    rows: dict[str, pa.Table]  # by the id of a version
    carried: dict[str, CarriedEpoch] = field(default_factory=dict)
    withdrawn: dict[str, int] = field(default_factory=dict)


def _kernel_job(flow: FlowPlan, versions: list[Version]) -> tuple[KernelJob, list[str]]:
    """The job of these views, and the tables that they are joined with."""
    [stream] = flow.streams
    queries = {version.id: version.plan.kernel.sql for version in versions}
    tables = {name for version in versions for name in version.plan.tables}
    return KernelJob(stream.name, queries), sorted(tables)


def _by_kernel(
    found: list[PartitionPartials],
    flow: FlowPlan,
    versions: list[Version],
    range: PositionRange,
    context: EpochContext,
    started_at: int,
) -> _Computed:
    highs = list(context.state.reached.highs)
    for part in found:
        times = (highs[part.partition], part.high_us)
        highs[part.partition] = max((t for t in times if t is not None), default=None)
    reached = context.state.after(range.upper, tuple(highs), started_at)
    counts = [sum(part.counts[n] for part in found) for n, _ in enumerate(COUNTS)]
    return _Computed(reached, counts, _concatenated(found, versions))


def _concatenated(found: list[PartitionPartials], versions: list[Version]) -> dict[str, pa.Table]:
    """The rows of all partitions; those of one key are merged by who reads them."""
    return {
        version.id: pa.concat_tables([part.rows[version.id] for part in found])
        for version in versions
    }


def _by_spark(
    records: EpochRecords,
    flow: FlowPlan,
    versions: list[Version],
    range: PositionRange,
    context: EpochContext,
    started_at: int,
    history: JoinHistory | None,
) -> _Computed:
    frame, spark, before = records.frame().persist(), records.spark, context.state.reached
    try:
        parts = unpack_streams(flow, frame)
        events = [part.where(f"{STATUS} = {int(EventStatus.EVENT)}") for part in parts]
        # Small Spark jobs mostly wait for the driver, so all of them run concurrently.
        with ThreadPoolExecutor(max_workers=len(parts) + 1 + 2 * len(versions)) as pool:
            each = zip(parts, flow.streams, flow.parts(before.highs), strict=True)
            counting = [_submit(pool, "count", _count, *given) for given in each]
            deciding = pool.submit(_reached, context, range, counting, started_at)
            joined = history and _Joined(history, versions, counting, before, deciding.result())
            relations = joined.relations(range, events) if joined else events
            for stream, relation in zip(flow.streams, relations, strict=True):
                relation.createOrReplaceTempView(f"`{stream.name}`")
            given = joined.marks if joined else {}
            jobs = {
                v: _submit(pool, "views", _work, spark, v, context, deciding, given, len(range))
                for v in versions
            }
            withdrawn = {v.id: pool.submit(_withdrawn, spark, v, given) for v in versions}
        if joined:
            joined.append(range, events)
        counted, reached = [job.result() for job in counting], deciding.result()
        made = {version: job.result() for version, job in jobs.items()}
        _rebase(spark, made, context, reached)
    finally:
        frame.unpersist()
    return _Computed(
        reached,
        _totals(counted),
        {v.id: part.rows if isinstance(part, CarriedRows) else part for v, part in made.items()},
        {v.id: part.epoch for v, part in made.items() if isinstance(part, CarriedRows)},
        {id: count for id, job in withdrawn.items() if (count := job.result())},
    )


def _submit(
    pool: ThreadPoolExecutor, phase: str, call: Callable[P, T], *args: P.args, **more: P.kwargs
) -> Future[T]:
    """Run a call with this thread's context, so that its logs and spans name the epoch."""

    def run() -> T:
        with span(f"epoch.{phase}"):
            return call(*args, **more)

    return pool.submit(copy_context().run, run)


def _work(
    spark: Any,
    version: Version,
    context: EpochContext,
    deciding: Future[FlowProgress],
    given: dict[str, Any],
    events: int,
) -> pa.Table | CarriedRows:
    if carry := version.plan.carry:
        # Only timers and patterns depend on the watermark.
        mark = deciding.result().marks[0] if carry.made is not None else None
        return fold_epoch(spark, version, carry, context, mark, events)
    return spark.sql(version.plan.partial_sql, args=given).toArrow()


def _rebase(
    spark: Any,
    made: dict[Version, pa.Table | CarriedRows],
    context: EpochContext,
    reached: FlowProgress,
) -> None:
    """Fold again, from the boundary, the views that had out-of-order events."""
    again = [
        (version, version.plan.carry)
        for version, part in made.items()
        if isinstance(part, CarriedRows) and part.rebase and version.live
    ]
    built = context.state.built
    since = PositionRange(built.position, reached.position)
    if len(since) > context.rebase_events_max:
        return
    stream = context.state.plan.streams[0]
    for version, carry in again:
        assert carry is not None
        # The other views are done, so the stream's relation may be replaced by a longer range.
        events = context.read(spark, since, built.highs)
        events.createOrReplaceTempView(f"`{stream.name}`")
        made[version] = rebase(spark, version, carry, context, reached.marks[0], len(since))


def _carried(parts: dict[str, CarriedEpoch], shedding: Shedding | None) -> dict[str, CarriedEpoch]:
    if shedding is None:
        return parts
    # States without the shed events are not valid for the next epoch.
    return {id: replace(part, disorder=NOW, provisional=True) for id, part in parts.items()}


class _Joined:
    """An epoch of joined streams, with the watermarks before and after it."""

    def __init__(
        self,
        history: JoinHistory,
        versions: list[Version],
        counting: Sequence[Future[StreamCounts]],
        before: FlowProgress,
        after: FlowProgress,
    ) -> None:
        self.history, self.flow, self.before, self.after = history, history.flow, before, after
        self.lows = [job.result().low for job in counting]
        self.joins = [v.plan.join for v in versions if v.plan.join]
        self.marks = watermark_parameters(before.marks, after.marks)

    def relations(self, range: PositionRange, events: list[Any]) -> list[Any]:
        """New and old events in one relation per stream, with the column `_new`."""
        since = history_starts(self.flow, self.joins, self.before.marks, self.lows)
        old = self.history.read(range.lower, since)
        return [
            with_new(new.select(*before.columns), True).unionByName(with_new(before, False))
            for before, new in zip(old, events, strict=True)
        ]

    def append(self, range: PositionRange, events: list[Any]) -> None:
        nothing = [None] * len(events)
        since = history_starts(self.flow, self.joins, self.after.marks, nothing)
        self.history.append(range.upper, events, since)


def _withdrawn(spark: Any, version: Version, given: dict[str, Any]) -> int:
    """The number of rows of the answer that a late partner has made wrong."""
    counts = version.plan.join.withdrawn if version.plan.join else ()
    return sum(int(rows_of(spark.sql(sql, args=given))[0][0]) for sql in counts)


def _count(frame: Any, stream: StreamPlan, highs: Times) -> StreamCounts:
    """The number of records by status, and the highest event time of each partition after them."""
    by_partition = frame.groupBy(PARTITION).agg(
        *_expressions(
            f"count_if({STATUS} = {int(EventStatus.EVENT)})",
            f"count_if({LATE})",
            f"count_if({STATUS} = {int(EventStatus.DUPLICATE)})",
            f"count_if({STATUS} = {int(EventStatus.DEAD_LETTER)})",
            f"max({high_sql(stream)})",
            f"min(unix_micros(`{stream.watermark[0]}`))" if stream.watermark else "NULL",
        )
    )
    found = rows_of(by_partition)
    after = list(highs)
    for partition, *_, top, _ in found:
        after[partition] = max((v for v in (after[partition], top) if v is not None), default=None)
    totals = [sum(column) for column in zip(*(row[1:5] for row in found), strict=True)] or [0] * 4
    low = min((row[6] for row in found if row[6] is not None), default=None)
    return StreamCounts(tuple(totals), tuple(after), low)


def _reached(
    context: EpochContext,
    range: PositionRange,
    counting: Sequence[Future[StreamCounts]],
    at_us: int,
) -> FlowProgress:
    """The end of the epoch: its position and its watermarks, which are fixed here."""
    highs = tuple(high for job in counting for high in job.result().highs)
    return context.state.after(range.upper, highs, at_us)


def _totals(counted: Sequence[StreamCounts]) -> list[int]:
    return [sum(column) for column in zip(*(each.counts for each in counted), strict=True)]


def _expressions(*texts: str) -> list[Any]:
    from pyspark.sql.functions import expr

    return [expr(text).alias(f"c{number}") for number, text in enumerate(texts)]
