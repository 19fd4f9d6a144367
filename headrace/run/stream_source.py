"""The rows of a stream for its subscribers: read from the log, or computed by Spark.

The events of a declared stream are read from the log, so that a subscription requires no JVM. A
condition or a derived stream is evaluated by Spark: each range of events is sent to the process of
ad-hoc queries, behind the fence, as the only relation. Both give the same values.
tests/run/test_stream_source.py reads without Spark, tests/run/test_stream_source_spark.py with it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from headrace.compile.stored_columns import reads_raw
from headrace.compile.stream_subscription import SubscribedStream
from headrace.core.errors import LimitReached
from headrace.core.event import HIDDEN, OFFSET, PARTITION, RAW
from headrace.core.position import Position, PositionRange
from headrace.define.layout import Layout
from headrace.define.project import Project
from headrace.log.json_rows import json_rows
from headrace.master.event_range import RangeReader
from headrace.run.history import declared_relations, table_relation, write_events
from headrace.serving.stream_feed import EVENTS_MAX, StreamRow, StreamSource
from headrace.spark.query_client import QueryRequest, QueryResult, Relation

RunQuery = Callable[[QueryRequest, str], QueryResult]  # for a user


class StreamSourceFactory:
    """Opens the source of a subscribed stream."""

    def __init__(self, project: Project, run_query: RunQuery) -> None:
        self.project, self.layout, self.run_query = project, Layout.of(project), run_query

    def __call__(self, known: SubscribedStream) -> StreamSource:
        name = known.stream.name
        log, master = self.layout.log(name), self.layout.master(name)
        raw = reads_raw(known.stream.schema, named=known.names_raw)
        events = RangeReader(known.stream, log, master, raw=raw)
        if known.plain:
            return LogSource(known, events)
        source = SparkSource(known, events, self)
        source.check()
        return source


class LogSource:
    """All events of a declared stream, without computed columns."""

    def __init__(self, known: SubscribedStream, events: RangeReader) -> None:
        self.known, self.events = known, events

    def end(self) -> Position:
        return self.events.end()

    def read(self, range: PositionRange) -> tuple[PositionRange, list[StreamRow]]:
        table = self.events.read(range)
        offsets = zip(table[PARTITION].to_pylist(), table[OFFSET].to_pylist(), strict=True)
        rows = json_rows(table, self.known.stream.schema)
        return range, [StreamRow(*offset, row) for offset, row in zip(offsets, rows, strict=True)]


class SparkSource:
    """Rows that Spark computes: a derived stream, a condition, or both."""

    def __init__(
        self, known: SubscribedStream, events: RangeReader, sources: StreamSourceFactory
    ) -> None:
        self.known, self.events, self.sources = known, events, sources
        self._events_max = EVENTS_MAX

    def end(self) -> Position:
        return self.events.end()

    def check(self) -> None:
        """Run the query over no events, so that an invalid one fails now."""
        end = self.end()
        self._query(PositionRange(end, end))

    def read(self, range: PositionRange) -> tuple[PositionRange, list[StreamRow]]:
        """As much of the range as fits into the limits of one query."""
        part = range.limited(self._events_max)
        while True:
            try:
                rows = self._query(part)
            except LimitReached:
                if len(part) <= 1:
                    raise
                part = part.half()
                self._events_max = len(part)
            else:
                self._events_max = min(2 * self._events_max, EVENTS_MAX)
                return part, rows

    def _query(self, range: PositionRange) -> list[StreamRow]:
        work = self.sources.layout.work("query")
        work.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=work) as folder:
            path = Path(folder) / "events.arrow"
            events = self.events.read(range)
            write_events(path, events.schema, [events])
            functions = self.sources.project.functions_file
            relations = self._relations(path)
            path_of_functions = str(functions) if functions else None
            # A subscription can be resumed, so the query must be deterministic.
            query = QueryRequest(self._sql, relations, path_of_functions, deterministic=True)
            result = self.sources.run_query(query, self.known.user)
        if result.truncated:
            raise LimitReached(
                f"an event of stream '{self.known.name}' produced more than {len(result.rows)} "
                "rows",
                hint="narrow the subscription with WHERE, or raise the setting query.rows_max.",
            )
        names = [column.name for column in result.columns]
        rows = (dict(zip(names, values, strict=True)) for values in result.rows)
        return sorted(map(_placed, rows), key=lambda placed: (placed.partition, placed.offset))

    @property
    def _sql(self) -> str:
        where = f" WHERE {self.known.condition}" if self.known.condition else ""
        return f"SELECT * FROM `{self.known.name}`{where}"

    def _relations(self, path: Path) -> list[Relation]:
        """The stream under its name, and the relations that it reads."""
        folder, derived = self.sources.project.folder, bool(self.known.sql)
        stored = [Relation("events", "arrow_file", [str(path)])]
        events = declared_relations(
            self.known.stream, stored, raw=self.known.names_raw, hidden=derived
        )
        if not derived:
            return events
        # Hidden: a caller who may read the stream need not be allowed to read its tables.
        tables = [
            msgspec.structs.replace(table_relation(table, folder), hidden=True)
            for table in self.known.tables
        ]
        return [*events, *tables, Relation(self.known.name, query=self.known.sql)]


def _placed(row: dict[str, Any]) -> StreamRow:
    columns = {name: value for name, value in row.items() if name not in (*HIDDEN, RAW)}
    return StreamRow(row[PARTITION], row[OFFSET], columns)
