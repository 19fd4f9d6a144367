"""The records of an epoch, as each engine takes them: Spark SQL a frame, the kernel a job.

Both read the same range of the log, with the same records shed. The frame is read by Spark when it
is used, so an epoch whose views all take the kernel decodes its range once.
tests/spark/test_kernel_job.py runs the job, tests/transcripts and tests/run both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

from headrace.compile.flow import FlowPlan
from headrace.core.position import PositionRange
from headrace.core.shedding import Shedding
from headrace.kernel.partials import KernelJob, PartitionPartials
from headrace.serving.watermark import Times
from headrace.spark.broadcast_tables import BroadcastTables
from headrace.spark.feed import Feed
from headrace.spark.kernel_job import run_over_log


class EpochRecords(Protocol):
    """The records of an epoch, of all streams of its flow."""

    @property
    def spark(self) -> Any:
        """The session of the speed layer."""

    def frame(self) -> Any:
        """As a DataFrame; `unpack_streams` gives the rows of each stream."""

    def partials(self, job: KernelJob, tables: Iterable[str]) -> list[PartitionPartials]:
        """What the kernel makes of them, joined with these tables, of one partition at least; of
        a flow of one stream.
        """


@dataclass(frozen=True, slots=True)
class LoggedRecords:
    """The records of a range of the logs."""

    tables: BroadcastTables
    flow: FlowPlan
    feeds: tuple[Feed, ...]
    range: PositionRange
    highs: Times  # the highest event times before it
    shedding: Shedding | None = None

    @property
    def spark(self) -> Any:
        return self.tables.spark

    def frame(self) -> Any:
        if not len(self.range):
            return pack_streams([feed.no_records(self.spark) for feed in self.feeds])
        highs = self.flow.parts(self.highs)
        parts = zip(self.feeds, self.flow.ranges(self.range), highs, strict=True)
        return pack_streams(
            [feed.records(self.spark, part, tops, self.shedding) for feed, part, tops in parts]
        )

    def partials(self, job: KernelJob, tables: Iterable[str]) -> list[PartitionPartials]:
        [feed] = self.feeds
        parts = feed.log_intervals(self.range, self.highs) or [feed.empty_interval()]
        return run_over_log(self.spark, job, parts, self.tables.sent(tables), self.shedding)


def pack_streams(frames: Sequence[Any]) -> Any:
    """One frame with the rows of all streams, so that they are read once; see `unpack_streams`."""
    from pyspark.sql.functions import lit, struct

    if len(frames) == 1:
        return frames[0]
    packed = [
        frame.select(lit(n).alias("_stream"), struct("*").alias(f"s{n}"))
        for n, frame in enumerate(frames)
    ]
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), packed)


def unpack_streams(flow: FlowPlan, frame: Any) -> list[Any]:
    """The rows of each stream."""
    if len(flow.streams) == 1:
        return [frame]
    return [frame.where(f"_stream = {n}").select(f"s{n}.*") for n in range(len(flow.streams))]
