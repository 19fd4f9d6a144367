"""One epoch: the events of a position range -> the partials of every view of the stream.

All views share one read of the range. Nothing is carried from one epoch to the next but what the
store holds, so an epoch can be done again from scratch at any time. tests/laws/test_seam.py and
tests/transcripts run epochs at every split.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from headrace.compile.plan import StreamPlan
from headrace.core.event import ARRIVED_AT, LATE, PARTITION, STATUS, Status
from headrace.core.position import PositionRange
from headrace.core.shedding import Shedding
from headrace.serving.store import NOW, Epoch, Row, Version, watermark_of
from headrace.spark.relations import rows_of
from headrace.speed.carry import Behind, CarriedRows, follow, rebase

Counts = tuple[dict[str, int], tuple[int | None, ...]]


def compute_epoch(
    frame: Any,
    stream: StreamPlan,
    versions: list[Version],
    range: PositionRange,
    behind: Behind,
    started_at: int,
    shedding: Shedding | None = None,
) -> Epoch:
    """Partials and counts of the events in `frame`, which holds what is taken of `range`."""
    frame, spark = frame.persist(), frame.sparkSession
    try:
        _register(frame, stream)
        # Small jobs wait more than they work, so all of them run at once over the one read.
        with ThreadPoolExecutor(max_workers=1 + len(versions)) as pool:
            counting = pool.submit(_counts, frame, stream, behind.state.highs)
            jobs = [pool.submit(_work, spark, version, behind, counting) for version in versions]
        counts, after = counting.result()
        made = {version: job.result() for version, job in zip(versions, jobs, strict=True)}
        _rebase(spark, made, range, behind, watermark_of(stream, after))
    finally:
        frame.unpersist()
    rows = {v.id: m.rows if isinstance(m, CarriedRows) else m for v, m in made.items()}
    carried = {v.id: m.epoch for v, m in made.items() if isinstance(m, CarriedRows)}
    if shedding:
        # States that have not seen every event are no beginning for those that follow.
        carried = {
            id: replace(epoch, disorder=NOW, provisional=True) for id, epoch in carried.items()
        }
    return Epoch(stream.name, range, after, counts, rows, started_at, carried, shedding)


def _register(frame: Any, stream: StreamPlan) -> None:
    events = frame.where(f"{STATUS} = {int(Status.EVENT)}")
    events.createOrReplaceTempView(f"`{stream.name}`")


def _work(
    spark: Any, version: Version, behind: Behind, counting: Future[Counts]
) -> Sequence[Row] | CarriedRows:
    if carry := version.plan.carry:
        # Only timers ask how far the watermark has come.
        after = counting.result()[1] if carry.processor else ()
        return follow(spark, version, carry, behind, watermark_of(behind.state.plan, after))
    return rows_of(spark.sql(version.plan.partial_sql))


def _rebase(
    spark: Any,
    made: dict[Version, Sequence[Row] | CarriedRows],
    range: PositionRange,
    behind: Behind,
    watermark: int | None,
) -> None:
    """Fold those views again from the boundary that have met events out of order."""
    again = [
        (version, version.plan.carry)
        for version, part in made.items()
        if isinstance(part, CarriedRows) and part.again and version.state == "live"
    ]
    since = PositionRange(behind.state.boundary, range.upper)
    if len(since) > behind.rebase_events_max:
        return
    for version, carry in again:
        assert carry is not None
        # The others are done, so the stream's name may mean a longer range now.
        _register(behind.read(since, behind.state.boundary_highs), behind.state.plan)
        made[version] = rebase(spark, version, carry, behind, watermark)


def _counts(frame: Any, stream: StreamPlan, highs: tuple[int | None, ...]) -> Counts:
    """How many events there were of each kind, and the highest event time after them."""
    high = "NULL"
    if stream.watermark:
        time, arrived = f"unix_micros({stream.watermark[0]})", f"unix_micros({ARRIVED_AT})"
        high = f"CASE WHEN {time} <= {arrived} + {stream.ahead_us} THEN {time} END"
    by_partition = frame.groupBy(PARTITION).agg(
        *_expressions(
            f"count_if({STATUS} = {int(Status.EVENT)})",
            f"count_if({LATE})",
            f"count_if({STATUS} = {int(Status.DUPLICATE)})",
            f"count_if({STATUS} = {int(Status.DEAD_LETTER)})",
            f"max({high})",
        )
    )
    found = rows_of(by_partition)
    after = list(highs)
    for partition, *_, top in found:
        after[partition] = max((v for v in (after[partition], top) if v is not None), default=None)
    totals = [sum(column) for column in zip(*(row[1:5] for row in found), strict=True)] or [0] * 4
    names = ("events", "late", "duplicates", "dead_letters")
    return dict(zip(names, totals, strict=True)), tuple(after)


def _expressions(*texts: str) -> list[Any]:
    from pyspark.sql.functions import expr

    return [expr(text).alias(f"c{number}") for number, text in enumerate(texts)]
