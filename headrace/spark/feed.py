"""A stream's events as DataFrames, from the master and the log; headrace/master/event_range.py says
which part is read from which.

A job fails if retention removes events from the log before it has read them; the next one reads
them from a newer version of the master. tests/spark/test_feed.py reads ranges across the boundary
of master and log.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headrace.compile.plan import StreamPlan
from headrace.compile.stored_columns import typed_columns
from headrace.core.address import LogAddress
from headrace.core.event import ARRIVED_AT, HIDDEN, OFFSET, PARTITION, RAW, STATUS, EventStatus
from headrace.core.position import Interval, Position, PositionRange
from headrace.core.shedding import Shedding
from headrace.log.decode import Decoder
from headrace.log.interval import LogInterval, log_intervals
from headrace.log.opening import open_reader
from headrace.master.decoding import decoder_of
from headrace.master.event_range import EventRange
from headrace.master.parquet import verify_files
from headrace.master.part import MasterPart, parts_of
from headrace.master.table import MasterTable
from headrace.serving.watermark import Times
from headrace.spark.log_range import log_frame

PART_ROWS = 1_000_000  # of a task that reads the master


@dataclass(frozen=True, slots=True)
class Feed:
    """One stream with its log and its master."""

    stream: StreamPlan
    log: LogAddress
    table: MasterTable

    def start(self) -> Position:
        """The oldest event that the log still has."""
        return open_reader(self.log).start()

    def end(self) -> Position:
        return open_reader(self.log).end()

    def events(self, spark: Any, range: PositionRange) -> Any:
        """The events of a range, from master and log, with the columns of `columns`."""
        split = EventRange.of(self.table, range)
        events = self._archived(spark, split).select(*self.columns)
        if len(split.logged):
            logged = self.logged_events(spark, split.logged, split.highs)
            events = events.unionByName(logged.select(*self.columns))
        return events.where(_within(range))

    def _archived(self, spark: Any, split: EventRange) -> Any:
        from pyspark.sql.pandas.types import from_arrow_schema

        schema = from_arrow_schema(self.table.schema, prefer_timestamp_ntz=True)
        if paths := verify_files(split.files()):
            return typed(spark.read.schema(schema).parquet(*paths), self.stream)
        # From Arrow, so that Spark knows that it is empty and runs no job.
        return typed(spark.createDataFrame(self.table.schema.empty_table(), schema), self.stream)

    def master_parts(self, range: PositionRange, columns: Collection[str]) -> list[MasterPart]:
        """The archived events of a range, for tasks that need these columns."""
        split, names = EventRange.of(self.table, range), {*columns, OFFSET}
        if len(split.logged):
            raise ValueError(f"expected an archived range, got {range}")
        schema = pa.schema([field for field in self.table.schema if field.name in names])
        return parts_of(split.files(), range, schema, PART_ROWS)

    def logged_events(self, spark: Any, range: PositionRange, highs: Times) -> Any:
        """The events of a range of the log; `highs` are the highest event times before it."""
        return self.records(spark, range, highs).where(f"{STATUS} = {int(EventStatus.EVENT)}")

    def records(
        self, spark: Any, range: PositionRange, highs: Times, shedding: Shedding | None = None
    ) -> Any:
        """The records of a range of the log, of every status."""
        return self._logged(spark, self.log_intervals(range, highs), shedding)

    def log_intervals(self, range: PositionRange, highs: Times) -> list[LogInterval]:
        """The partitions of a range, for tasks; `highs` are the highest times before it."""
        return log_intervals(open_reader(self.log), self._decoder, range, highs)

    def no_records(self, spark: Any) -> Any:
        """A frame without records, but of which Spark does not know that it is empty, so that the
        whole plan is run.
        """
        return self._logged(spark, [self.empty_interval()])

    def empty_interval(self) -> LogInterval:
        """No records, for a task that finds none."""
        return LogInterval(open_reader(self.log), self._decoder, 0, Interval(0, 0), None)

    def _logged(
        self, spark: Any, parts: Sequence[LogInterval], shedding: Shedding | None = None
    ) -> Any:
        schema = self._decoder.arrow_schema(raw=self.stream.raw)
        return typed(log_frame(spark, parts, schema, shedding), self.stream)

    @property
    def _decoder(self) -> Decoder:
        return decoder_of(self.stream)

    @property
    def columns(self) -> list[str]:
        """The columns that a definition may read."""
        return [
            *(f"`{name}`" for name in self.stream.schema.stored.names),
            *HIDDEN,
            *([RAW] if self.stream.raw else []),
        ]


def typed(frame: Any, stream: StreamPlan) -> Any:
    """The stored columns with the types that a definition reads."""
    from pyspark.sql.functions import expr

    columns = typed_columns(stream.schema, raw=stream.raw)
    made = {name: expr(sql) for name, sql in columns.items()}
    return frame.withColumns(made) if made else frame


def _within(range: PositionRange) -> str:
    """SQL: the event lies in the range."""
    conditions = [
        f"({PARTITION} = {partition} "
        f"AND {OFFSET} >= {interval.lower} AND {OFFSET} < {interval.upper})"
        for partition, interval in range.intervals()
    ]
    return " OR ".join(conditions) or "false"


def high_sql(stream: StreamPlan) -> str:
    """SQL of the event time in microseconds; NULL if the event does not move the watermark."""
    if not stream.watermark:
        return "CAST(NULL AS BIGINT)"
    time, arrived = f"unix_micros({stream.watermark[0]})", f"unix_micros({ARRIVED_AT})"
    return f"CASE WHEN {time} <= {arrived} + {stream.ahead_us} THEN {time} END"
