"""One epoch: the events of a position range -> the partials of every view of the stream.

All views share one read of the range. Nothing is carried from one epoch to the next but the
store's position, so an epoch can be done again from scratch at any time. tests/laws/test_seam.py
and tests/transcripts run epochs at every split.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from headrace.compile.plan import StreamPlan
from headrace.core.event import ARRIVED_AT, LATE, PARTITION, STATUS, Status
from headrace.core.position import PositionRange
from headrace.core.shedding import Shedding
from headrace.core.time import HOUR
from headrace.serving.store import Epoch, Row, Version
from headrace.spark.relations import rows_of

# An event dated further ahead of its arrival than this does not move the watermark.
AHEAD_MAX_US = HOUR


def compute_epoch(
    frame: Any,
    stream: StreamPlan,
    versions: list[Version],
    range: PositionRange,
    highs: tuple[int | None, ...],
    started_at: int,
    shedding: Shedding | None = None,
) -> Epoch:
    """Partials and counts of the events in `frame`, which holds what is taken of `range`."""
    frame = frame.persist()
    try:
        events = frame.where(f"{STATUS} = {int(Status.EVENT)}")
        events.createOrReplaceTempView(f"`{stream.name}`")
        # Small jobs wait more than they work, so all of them run at once over the one read.
        with ThreadPoolExecutor(max_workers=1 + len(versions)) as pool:
            counting = pool.submit(_counts, frame, stream, highs)
            partials = [pool.submit(_partials, frame.sparkSession, version) for version in versions]
        counts, after = counting.result()
        rows = {version.id: job.result() for version, job in zip(versions, partials, strict=True)}
        return Epoch(stream.name, range, after, counts, rows, started_at, shedding)
    finally:
        frame.unpersist()


def _partials(spark: Any, version: Version) -> Sequence[Row]:
    return rows_of(spark.sql(version.plan.partial_sql))


def _counts(
    frame: Any, stream: StreamPlan, highs: tuple[int | None, ...]
) -> tuple[dict[str, int], tuple[int | None, ...]]:
    """How many events there were of each kind, and the highest event time after them."""
    high = "NULL"
    if stream.watermark:
        time, arrived = f"unix_micros({stream.watermark[0]})", f"unix_micros({ARRIVED_AT})"
        high = f"CASE WHEN {time} <= {arrived} + {AHEAD_MAX_US} THEN {time} END"
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
