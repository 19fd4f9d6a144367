"""The log as a Spark streaming source: offsets are positions, rows are typed columns.

The reader starts where it is told to (the store's position) and takes at most `events_max` events
a batch. One log partition is one input partition, because lateness is decided in the log's own
order. tests/spark/test_source.py reads a live log through it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from headrace.compile.plan import StreamPlan
from headrace.core.position import Interval, Position, PositionRange
from headrace.log.decode import Decoder
from headrace.log.reader import TopicReader
from headrace.master.archive import CHUNK_EVENTS, decoder_of
from headrace.serving.catalog import read_highs

FORMAT = "headrace_log"


class LogSource(DataSource):
    """`spark.readStream.format("headrace_log")` with options log, stream (a plan), start, columns
    and the flow that reads it; `spark.read` with the range and the highs before it instead.
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> Any:
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(self._decoder().arrow_schema(raw=False, columns=self._columns()))

    def _decoder(self) -> Decoder:
        return decoder_of(msgspec.json.decode(self.options["stream"], type=StreamPlan))

    def _columns(self) -> list[str]:
        return [name for name in self.options["columns"].split(",") if name]

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
        return LogStreamReader(
            Path(self.options["log"]),
            self._decoder(),
            Position.parse(self.options["start"]),
            self._columns(),
            int(self.options["events_max"]),
            Path(self.options["store"]),
            self.options["flow"],
            int(self.options["number"]),
        )

    def reader(self, schema: Any) -> DataSourceReader:
        highs = msgspec.json.decode(self.options["highs"], type=tuple[int | None, ...])
        range = PositionRange(*(Position.parse(self.options[end]) for end in ("start", "end")))
        return LogReader(Path(self.options["log"]), self._decoder(), self._columns(), range, highs)


class LogPartition(InputPartition):
    def __init__(self, partition: int, interval: Interval, high_us: int | None) -> None:
        super().__init__(partition)
        self.partition, self.interval, self.high_us = partition, interval, high_us


class LogReader(DataSourceReader):
    """A range of the log at once; `highs` are the highest event times before it."""

    def __init__(
        self,
        log: Path,
        decoder: Decoder,
        columns: list[str],
        range: PositionRange,
        highs: tuple[int | None, ...],
    ) -> None:
        self.log, self.decoder, self.columns = log, decoder, columns
        self.range, self.highs = range, highs

    def partitions(self) -> list[LogPartition]:
        return [LogPartition(n, interval, self.highs[n]) for n, interval in self.range.intervals()]

    def read(self, part: LogPartition) -> Iterator[pa.RecordBatch]:
        yield from _decoded(self.log, self.decoder, part, self.columns)


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(
        self,
        log: Path,
        decoder: Decoder,
        start: Position,
        columns: list[str],
        events_max: int,
        store: Path,
        flow: str,
        number: int,
    ) -> None:
        self.log, self.decoder, self.start = log, decoder, start
        self.columns, self.events_max, self.store = columns, events_max, store
        self.flow, self.number = flow, number
        self.last: Position | None = None

    def initialOffset(self) -> dict[str, str]:  # noqa: N802
        return {"position": str(self.start)}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self.events_max)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self.last = TopicReader(self.log).end()

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:  # noqa: N802
        lower = Position.parse(start["position"])
        upper = self.last or TopicReader(self.log).end().latest(lower)
        rows = (
            limit.max_rows if isinstance(limit, ReadMaxRows) else len(PositionRange(lower, upper))
        )
        return {"position": str(PositionRange(lower, upper).limited(rows).upper)}

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> list[LogPartition]:
        range = PositionRange(Position.parse(start["position"]), Position.parse(end["position"]))
        # Asked on the driver's machine, after the epoch before has been committed.
        highs = read_highs(self.store, self.flow, self.number, range.lower)
        return [
            LogPartition(number, interval, highs[number]) for number, interval in range.intervals()
        ]

    def read(self, part: LogPartition) -> Iterator[pa.RecordBatch]:
        yield from _decoded(self.log, self.decoder, part, self.columns)


def _decoded(
    log: Path, decoder: Decoder, part: LogPartition, columns: list[str]
) -> Iterator[pa.RecordBatch]:
    blocks = TopicReader(log).blocks(part.partition, part.interval)
    decoded = decoder.decode(blocks, part.partition, part.high_us, raw=False, columns=columns)
    yield from decoded.table.to_batches(max_chunksize=CHUNK_EVENTS)
