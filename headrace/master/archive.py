"""The archive: a Spark job moves a range of the log into the master.

Each log partition is one task, because lateness is decided in the log's own order. The task
decodes the range and writes Parquet files; the driver then commits them all with the new
position. A crash before the commit leaves files that no version references; the range is archived
again. So a range may also be written before it is known whether it will be committed.
tests/master/test_archive.py checks contents and counts; the kill tests that nothing is lost or
duplicated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.compile.plan import StreamPlan
from headrace.core.address import LogAddress
from headrace.core.event import ARRIVED_AT, REASON, STATUS, EventStatus
from headrace.core.failpoint import failpoint
from headrace.core.meters import DEAD_LETTERS
from headrace.core.position import Position, PositionRange
from headrace.core.time import DAY as DAY_US
from headrace.core.time import iso
from headrace.log.decode_errors import kind_of
from headrace.log.interval import LogInterval, log_intervals
from headrace.log.opening import open_reader
from headrace.master.decoding import declared_of, declared_schema, decoder_of
from headrace.master.parquet import FileWriter
from headrace.master.table import MasterTable, file_schema
from headrace.master.version import MasterFile


@dataclass(frozen=True, slots=True)
class ArchiveTask:
    """One log partition's part of a step; small, because it is sent to an executor."""

    records: LogInterval
    master: Path


@dataclass(frozen=True, slots=True)
class WrittenRange:
    """Files with the events of a range that no version of the master references yet."""

    range: PositionRange
    files: tuple[MasterFile, ...]
    highs: tuple[int | None, ...]  # the highest event time of each partition after it
    refused: Counter[str]  # dead letters by kind


Draft = Callable[[], WrittenRange | None]


class Archive:
    """Moves one stream's log into its master, a step at a time. `draft` gives the range that was
    written beforehand, if there is one.
    """

    def __init__(
        self,
        spark: Any,
        stream: StreamPlan,
        log: LogAddress,
        master: Path,
        draft: Draft = lambda: None,
    ) -> None:
        self.spark, self.stream, self.log, self._draft = spark, stream, log, draft
        self.decoder, self._partitions = decoder_of(stream), stream.partitions
        self.table = MasterTable(master, declared_schema(stream), stream.partitions)

    def step(self, events_max: int) -> int:
        """Archive the new events, up to about `events_max`; returns their number."""
        version, written = self.table.newest(), self._draft()
        self._draft = lambda: None
        if written is None or written.range.lower != version.position:
            written = self._written(version.position, version.highs, events_max)
        if not len(written.range):
            return 0
        failpoint("archive.written")
        self.table.append(written.range, written.files, written.highs)
        for kind, many in written.refused.items():
            DEAD_LETTERS.labels(self.stream.name, kind).inc(many)
        return len(written.range)

    def write(self, events_max: int) -> WrittenRange:
        """Write what the next step would commit. The master stays as it is."""
        if version := self.table.newest_or_none():
            return self._written(version.position, version.highs, events_max)
        start = Position.start(self._partitions)
        return self._written(start, (None,) * self._partitions, events_max)

    def waiting(self) -> int:
        """The number of events in the log that are not in the master."""
        version, end = self.table.newest_or_none(), open_reader(self.log).end()
        return end - (version.position if version else Position.start(self._partitions))

    def _written(
        self, lower: Position, before: Sequence[int | None], events_max: int
    ) -> WrittenRange:
        log, highs = open_reader(self.log), list(before)
        range = PositionRange(lower, log.end().latest(lower)).limited(events_max)
        if not len(range):
            return WrittenRange(range, (), tuple(highs), Counter())
        parts = log_intervals(log, self.decoder, range, before)
        tasks = [ArchiveTask(part, self.table.path) for part in parts]
        results = self.spark.sparkContext.parallelize(tasks, len(tasks)).map(run_task).collect()
        for task, (_, high, _) in zip(tasks, results, strict=True):
            highs[task.records.partition] = high
        files = tuple(file for files, *_ in results for file in files)
        refused = sum((refused for *_, refused in results), Counter[str]())
        return WrittenRange(range, files, tuple(highs), refused)

    def step_to_end(self, events_max: int) -> Position:
        """Archive everything up to the log's present end."""
        end = open_reader(self.log).end()
        while not end <= (reached := self.table.newest().position):
            self.step(events_max)
        return reached


def run_task(task: ArchiveTask) -> tuple[list[MasterFile], int | None, Counter[str]]:
    """Decode a partition's range and write it as Parquet; runs in a Spark executor.

    Returns the files, the highest event time after them, and the number of dead letters by kind.
    """
    writers, high, refused = _Writers(task), task.records.high_us, Counter[str]()
    for decoded in task.records.decoded(raw=True):
        high = decoded.high_us
        writers.write(decoded.table)
        refused.update(_kinds(decoded.table))
    return writers.close(), high, refused


def _kinds(table: pa.Table) -> Iterator[str]:
    """The kind of each dead letter's reason."""
    reasons = table[REASON]
    if reasons.null_count < len(reasons):
        yield from map(kind_of, reasons.drop_null().to_pylist())


class _Writers:
    """One Parquet file for each status and arrival day."""

    def __init__(self, task: ArchiveTask) -> None:
        self.task = task
        self.schema = file_schema(declared_of(task.records.decoder))
        self.open: dict[int, FileWriter] = {}

    def write(self, table: pa.Table) -> None:
        """Write the rows to their files; nearly always all of them belong to one."""
        statuses = table[STATUS].to_numpy()
        days = table[ARRIVED_AT].cast(pa.int64()).to_numpy() // DAY_US
        kinds = days * len(EventStatus) + statuses
        for kind in np.unique(kinds).tolist():
            whole = bool((kinds == kind).all())
            part = table if whole else table.filter(pa.array(kinds == kind))
            if kind not in self.open:
                self.open[kind] = self._writer(*divmod(kind, len(EventStatus)))
            self.open[kind].write(part)

    def _writer(self, day: int, status: int) -> FileWriter:
        place = EventStatus(status).word, iso(day * DAY_US)[:10], self.task.records.partition
        return FileWriter(self.task.master, self.schema, place)

    def close(self) -> list[MasterFile]:
        return [writer.close() for writer in self.open.values()]
