"""A stream's events as Spark reads them: from the master as far as it goes, then from the log.

Both give the same rows for the same range, so it does not matter how far the archive has come when
a range is read. tests/spark/test_feed.py reads a range across the place where they meet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from headrace.compile.plan import StreamPlan
from headrace.compile.stored import typed_columns
from headrace.core.address import LogAddress
from headrace.core.event import ARRIVED_AT, HIDDEN, OFFSET, PARTITION, RAW, STATUS, Status
from headrace.core.position import Position, PositionRange
from headrace.log.opening import open_reader
from headrace.master.parquet import sound
from headrace.master.table import MasterTable, event_files
from headrace.spark.source import FORMAT, LogSource


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

    def archived_events(self, spark: Any, range: PositionRange) -> Any:
        """The events of a range, as Spark reads them from the master's files."""
        from pyspark.sql.pandas.types import from_arrow_schema

        paths = sound(event_files(self.table.newest().files, range))
        schema = from_arrow_schema(self.table.schema, prefer_timestamp_ntz=True)
        if not paths:
            # As Arrow, because Spark then knows that it is empty and runs no job.
            empty = spark.createDataFrame(self.table.schema.empty_table(), schema)
            return typed(empty, self.stream)
        frame = typed(spark.read.schema(schema).parquet(*paths), self.stream)
        conditions = [
            f"({PARTITION} = {partition} "
            f"AND {OFFSET} >= {interval.lower} AND {OFFSET} < {interval.upper})"
            for partition, interval in range.intervals()
        ]
        return frame.where(" OR ".join(conditions))

    def events_before(self, spark: Any, position: Position) -> Any:
        """All events before a position, wherever they are now."""
        version = self.table.newest()
        cut = version.position.earliest(position)
        cold = PositionRange(Position.start(self.stream.partitions), cut)
        events = self.archived_events(spark, cold)
        hot = PositionRange(cut, position)
        if not len(hot):
            return events
        logged = self.logged_events(spark, hot, version.highs)
        return events.select(*self.columns).unionByName(logged.select(*self.columns))

    def logged_events(self, spark: Any, range: PositionRange, highs: tuple[int | None, ...]) -> Any:
        """The events of a range as the log has them; `highs` are the highest times before it."""
        spark.dataSource.register(LogSource)
        frame = (
            spark.read.format(FORMAT)
            .option("log", str(self.log))
            .option("stream", msgspec.json.encode(self.stream).decode())
            .option("columns", ",".join(self.stream.schema.stored.names))
            .option("start", str(range.lower))
            .option("end", str(range.upper))
            .option("highs", msgspec.json.encode(highs).decode())
            .load()
        )
        return typed(frame, self.stream).where(f"{STATUS} = {int(Status.EVENT)}")

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


def high_sql(stream: StreamPlan) -> str:
    """The event time as far as it moves the watermark, in microseconds."""
    if not stream.watermark:
        return "CAST(NULL AS BIGINT)"
    time, arrived = f"unix_micros({stream.watermark[0]})", f"unix_micros({ARRIVED_AT})"
    return f"CASE WHEN {time} <= {arrived} + {stream.ahead_us} THEN {time} END"
