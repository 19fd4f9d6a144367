"""The log as a Spark source: offsets are positions, rows are typed columns.

The streaming reader starts where it is told to (the store's position) and takes at most
`events_max` events a batch; the plain reader takes the range from `start` to `end`. One log
partition is one input partition, because lateness is decided in the log's own order. A stream that
sheds goes to the log's end when too much waits; the decision is part of the offset, so that a batch
that is read again is the same. What is shed is decoded like the rest: lateness and watermark do not
depend on it. Where nothing waits, but silence would bring the stream's watermark further, the
offset says so with the same position, and Spark runs a batch without events.
tests/spark/test_source.py reads a live log through both.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from headrace.compile.plan import StreamPlan
from headrace.core.address import LogAddress
from headrace.core.event import OFFSET, SHED, STATUS, Status
from headrace.core.position import Interval, Position, PositionRange
from headrace.core.shedding import Shedding, decided
from headrace.core.time import now_us
from headrace.define.definitions import Pace
from headrace.log.decode import Decoded, Decoder
from headrace.log.opening import open_reader
from headrace.master.decoding import decoder_of
from headrace.serving.progress import glance
from headrace.serving.store import StreamState

FORMAT = "headrace_log"
BATCH_EVENTS = 65_536


class LogSource(DataSource):
    """`spark.readStream.format("headrace_log")` with options log, stream (a plan), start, columns
    and the flow that reads it; `spark.read` with the range and the highs before it instead. The
    events' bytes are copied only if the plan says that something reads them.
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> Any:
        from pyspark.sql.pandas.types import from_arrow_schema

        schema = self._decoder().arrow_schema(raw=self._stream().raw, columns=self._columns())
        return from_arrow_schema(schema, prefer_timestamp_ntz=True)

    def _stream(self) -> StreamPlan:
        return msgspec.json.decode(self.options["stream"], type=StreamPlan)

    def _decoder(self) -> Decoder:
        return decoder_of(self._stream())

    def _columns(self) -> list[str]:
        return [name for name in self.options["columns"].split(",") if name]

    def reader(self, schema: Any) -> DataSourceReader:
        range = PositionRange(
            Position.parse(self.options["start"]), Position.parse(self.options["end"])
        )
        highs = msgspec.json.decode(self.options["highs"])
        log, raw = LogAddress.parse(self.options["log"]), self._stream().raw
        return LogRangeReader(log, self._decoder(), range, highs, self._columns(), raw)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
        stream = self._stream()
        return LogStreamReader(
            LogAddress.parse(self.options["log"]),
            self._decoder(),
            Position.parse(self.options["start"]),
            self._columns(),
            int(self.options["events_max"]),
            Path(self.options["store"]),
            stream.pace,
            self.options["flow"],
            int(self.options["number"]),
            raw=stream.raw,
        )


class LogPartition(InputPartition):
    def __init__(
        self, partition: int, interval: Interval, high_us: int | None, shedding: Shedding | None
    ) -> None:
        super().__init__(partition)
        self.partition, self.interval = partition, interval
        self.high_us, self.shedding = high_us, shedding


class LogRangeReader(DataSourceReader):
    """A range of the log, whatever comes after it."""

    def __init__(
        self,
        log: LogAddress,
        decoder: Decoder,
        range: PositionRange,
        highs: list[int | None],
        columns: list[str],
        raw: bool,
    ) -> None:
        self.log, self.decoder, self.columns, self.raw = log, decoder, columns, raw
        self.range, self.highs = range, highs

    def partitions(self) -> list[LogPartition]:
        return [
            LogPartition(n, interval, self.highs[n], None) for n, interval in self.range.intervals()
        ]

    def read(self, part: LogPartition) -> Iterator[pa.RecordBatch]:
        decoded = _decoded(self.log, self.decoder, part, self.columns, self.raw)
        yield from decoded.table.to_batches(max_chunksize=BATCH_EVENTS)


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(
        self,
        log: LogAddress,
        decoder: Decoder,
        start: Position,
        columns: list[str],
        events_max: int,
        store: Path,
        pace: Pace,
        flow: str,
        number: int,
        *,
        raw: bool,
    ) -> None:
        self.log, self.decoder, self.start, self.raw = log, decoder, start, raw
        self.columns, self.events_max, self.store = columns, events_max, store
        self.pace, self.flow, self.number = pace, flow, number
        self.last: Position | None = None

    def initialOffset(self) -> dict[str, str]:  # noqa: N802
        return {"position": str(self.start)}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self.events_max)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self.last = open_reader(self.log).end()

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:  # noqa: N802
        lower = Position.parse(start["position"])
        upper = self.last or open_reader(self.log).end().latest(lower)
        waiting = PositionRange(lower, upper)
        if not len(waiting):
            return self._silent(start, lower)
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else len(waiting)
        if (how := self.pace.sheds) and self.pace.lag_events_max:
            shedding = decided(waiting, how, self.pace.lag_events_max, rows)
            if shedding:
                return {"position": str(upper), "shed": str(shedding)}
        return {"position": str(waiting.limited(rows).upper)}

    def _silent(self, start: dict[str, str], position: Position) -> dict[str, str]:
        """The same offset, not one that only says the same: Spark runs a batch if it differs."""
        state = glance(self.store, self.flow)
        mark = state.event_times(now_us())[self.number].watermark_us
        if mark == state.reached.marks[self.number] or not self._at(state, position):
            return start
        return {"position": str(position), "watermark": str(mark)}

    def _at(self, state: StreamState, position: Position) -> bool:
        """Whether the epoch before the position has been committed."""
        return state.plan.positions(state.position)[self.number] == position

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> list[LogPartition]:
        upper, shedding = end_of(end)
        range = PositionRange(Position.parse(start["position"]), upper)
        # Asked on the driver's machine, after the epoch before has been committed.
        state = glance(self.store, self.flow)
        known = state.plan.parts(state.reached.highs)[self.number]
        highs = known if self._at(state, range.lower) else (None,) * len(known)
        return [
            LogPartition(number, interval, highs[number], shedding)
            for number, interval in range.intervals()
        ]

    def read(self, part: LogPartition) -> Iterator[pa.RecordBatch]:
        decoded = _decoded(self.log, self.decoder, part, self.columns, self.raw)
        table = _taken(decoded, part, self._time()) if part.shedding else decoded.table
        yield from table.to_batches(max_chunksize=BATCH_EVENTS)

    def _time(self) -> str | None:
        """The column of the event time, as the stream declares it."""
        mark = self.decoder.watermark
        column = self.decoder.schema.find(mark.column) if mark else None
        return column.name if column else None


def end_of(offset: dict[str, str]) -> tuple[Position, Shedding | None]:
    """What an offset says: how far a batch goes, and what is passed over in it."""
    shed = offset.get("shed")
    return Position.parse(offset["position"]), Shedding.parse(shed) if shed else None


def _decoded(
    log: LogAddress, decoder: Decoder, part: LogPartition, columns: list[str], raw: bool
) -> Decoded:
    blocks = open_reader(log).blocks(part.partition, part.interval)
    return decoder.decode(blocks, part.partition, part.high_us, raw=raw, columns=columns)


def _taken(decoded: Decoded, part: LogPartition, time: str | None) -> pa.Table:
    """The rows without the events that are shed. One of those stays, marked, if its `time` is the
    highest."""
    assert part.shedding is not None
    table = decoded.table
    events = table[STATUS].to_numpy() == int(Status.EVENT)
    taken = part.shedding.takes(part.partition, part.interval, table[OFFSET].to_numpy())
    kept = table.filter(pa.array(taken | ~events))
    if time not in table.column_names or decoded.high_us is None:
        return kept
    times = table[time].combine_chunks().view(pa.int64()).fill_null(-1).to_numpy()
    highest = np.flatnonzero(events & ~taken & (times == decoded.high_us))[:1]
    mark = table.take(pa.array(highest))
    status = table.schema.get_field_index(STATUS)
    shed = pa.array([SHED] * len(mark), pa.int8())
    return pa.concat_tables([kept, mark.set_column(status, table.schema.field(status), shed)])
