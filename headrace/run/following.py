"""The rows of a stream for those who subscribe to it: read from the log, or asked of Spark.

The events of a declared stream are read as they are, so that hearing one needs no JVM. What a
condition or a derived stream makes of them only Spark knows: each range is handed to the process
of ad-hoc queries, behind the fence, which is asked about these events alone. Both write the same
values. tests/run/test_following.py reads without Spark, tests/run/test_following_spark.py with it.
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
from headrace.serving.channel import EVENTS_MAX, Placed, Source
from headrace.spark.query_client import QueryRequest, QueryResult, Relation

Ask = Callable[[QueryRequest], QueryResult]


class Following:
    """Opens streams of a project to be read."""

    def __init__(self, project: Project, ask: Ask) -> None:
        self.project, self.layout, self.ask = project, Layout.of(project), ask

    def __call__(self, known: SubscribedStream) -> Source:
        name = known.stream.name
        log, master = self.layout.log(name), self.layout.master(name)
        raw = reads_raw(known.stream.schema, named=known.names_raw)
        events = RangeReader(known.stream, log, master, raw=raw)
        if known.plain:
            return Plain(known, events)
        made = Asked(known, events, self)
        made.check()
        return made


class Plain:
    """The events of a declared stream, all of them, where nothing of them is computed."""

    def __init__(self, known: SubscribedStream, events: RangeReader) -> None:
        self.known, self.events = known, events

    def end(self) -> Position:
        return self.events.end()

    def read(self, range: PositionRange) -> tuple[PositionRange, list[Placed]]:
        table = self.events.read(range)
        places = zip(table[PARTITION].to_pylist(), table[OFFSET].to_pylist(), strict=True)
        rows = json_rows(table, self.known.stream.schema)
        return range, [Placed(*place, row) for place, row in zip(places, rows, strict=True)]


class Asked:
    """What Spark makes of a stream's events: a derived stream, a condition, or both."""

    def __init__(self, known: SubscribedStream, events: RangeReader, of: Following) -> None:
        self.known, self.events, self.of = known, events, of
        self._events_max = EVENTS_MAX

    def end(self) -> Position:
        return self.events.end()

    def check(self) -> None:
        """Ask about no events: what is wrong with the question is told now."""
        end = self.end()
        self._ask(PositionRange(end, end))

    def read(self, range: PositionRange) -> tuple[PositionRange, list[Placed]]:
        """As much of the range as one answer can hold, within the limits of a query."""
        taken = range.limited(self._events_max)
        while True:
            try:
                rows = self._ask(taken)
            except LimitReached:
                if len(taken) <= 1:
                    raise
                taken = taken.half()
                self._events_max = len(taken)
            else:
                self._events_max = min(2 * self._events_max, EVENTS_MAX)
                return taken, rows

    def _ask(self, range: PositionRange) -> list[Placed]:
        work = self.of.layout.work("query")
        work.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=work) as folder:
            path = Path(folder) / "events.arrow"
            events = self.events.read(range)
            write_events(path, events.schema, [events])
            functions = self.of.project.functions_file
            relations = self._relations(path)
            path_of_functions = str(functions) if functions else None
            # A subscription can be resumed, so it must find the same rows again.
            result = self.of.ask(
                QueryRequest(self._sql, relations, path_of_functions, deterministic=True)
            )
        if result.truncated:
            raise LimitReached(
                f"an event of stream '{self.known.name}' has more than {len(result.rows)} rows",
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
        """The stream's name, and below it what it is made of."""
        folder, derived = self.of.project.folder, bool(self.known.sql)
        kept = [Relation("events", "arrow_file", [str(path)])]
        events = declared_relations(
            self.known.stream, kept, raw=self.known.names_raw, hidden=derived
        )
        if not derived:
            return events
        # A condition speaks of the stream; who may read it need not be one who may read its tables.
        tables = [
            msgspec.structs.replace(table_relation(table, folder), hidden=True)
            for table in self.known.tables
        ]
        return [*events, *tables, Relation(self.known.name, query=self.known.sql)]


def _placed(row: dict[str, Any]) -> Placed:
    place = row[PARTITION], row[OFFSET]
    return Placed(
        *place, {name: value for name, value in row.items() if name not in (*HIDDEN, RAW)}
    )
