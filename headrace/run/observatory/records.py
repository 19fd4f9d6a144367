"""The records of a range of a stream, in DuckDB and as JSON.

The newest come from the log and the rest from the master's files, which headrace/audit/events.py
registers. tests/run/test_search.py reads both.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from headrace.api.resources.events import EventRecord
from headrace.audit.computed import register_computed
from headrace.audit.events import records_name, register_range
from headrace.audit.limits import within_time
from headrace.audit.raw_json import register_raw_json
from headrace.compile.plan import ColumnPlan, StreamPlan
from headrace.core.event import (
    ARRIVED_AT,
    LATE,
    LATENESS,
    OFFSET,
    PARTITION,
    RAW,
    REASON,
    STATUS,
    EventStatus,
)
from headrace.core.position import Position, PositionRange
from headrace.define.definitions import StreamDefinition
from headrace.ingest.fields import Value, field_reader
from headrace.run.observatory.observed_project import ObservedProject

SHOWN_MAX = 16_384  # bytes of a record in a list
_COMPUTED = "_computed"  # the records with their computed columns
_HIDDEN = (PARTITION, OFFSET, ARRIVED_AT, STATUS, REASON, LATE, LATENESS, RAW)


@dataclass(frozen=True, slots=True)
class Records:
    """A connection in which `relation` has the records of a range. `columns` lacks computed columns
    that only Spark can compute.
    """

    connection: Any
    stream: StreamPlan
    definition: StreamDefinition
    lateness_known: bool
    columns: tuple[ColumnPlan, ...]

    @property
    def relation(self) -> str:
        return _COMPUTED

    def fetch(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        return list(self.connection.execute(sql, list(values)).fetchall())

    def shown(
        self, ending: str, values: Sequence[Any] = (), *, whole: bool = False
    ) -> list[EventRecord]:
        """The records of `SELECT … ending`; with `whole`, long records are not truncated."""
        names = [column.name for column in self.columns]
        columns = ", ".join([*_HIDDEN, *(f'"{name}"' for name in names)])
        rows = self.fetch(f"SELECT {columns} FROM {self.relation} {ending}", values)
        raws = [bytes(row[len(_HIDDEN) - 1]) for row in rows]
        keys, ids = field_reader(self.definition)(raws)
        return [
            self._record(row, raw, _at(keys, n), _at(ids, n), whole)
            for n, (row, raw) in enumerate(zip(rows, raws, strict=True))
        ]

    def _record(
        self, row: Sequence[Any], raw: bytes, key: str | None, id: str | None, whole: bool
    ) -> EventRecord:
        partition, offset, arrived, status, reason, late, lateness, _ = row[: len(_HIDDEN)]
        names = (column.name for column in self.columns)
        body = {n: shown_value(v) for n, v in zip(names, row[len(_HIDDEN) :], strict=True)}
        cut, event = not whole and len(raw) > SHOWN_MAX, status == EventStatus.EVENT
        mark, known = self.stream.watermark, event and self.lateness_known
        return EventRecord(
            partition,
            offset,
            str(shown_value(arrived)),
            EventStatus(status).word,  # type: ignore[arg-type]
            reason,
            body[mark[0]] if mark and event else None,
            bool(late) if known else None,
            lateness / 1000 if known else None,
            id,
            key,
            body if event and not cut else None,
            (raw[:SHOWN_MAX] if cut else raw).decode("utf-8", "backslashreplace"),
            cut,
        )


def _at(values: Sequence[Value], number: int) -> str | None:
    value = values[number] if values else None
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else _text(value)


def _text(value: str | int | None) -> str | None:
    return None if value is None else str(value)


def shown_value(value: Any) -> Any:
    """A value of DuckDB as JSON; timestamps without a zone are UTC."""
    if isinstance(value, datetime):
        time = value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
        return time.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, dict):
        return {name: shown_value(item) for name, item in value.items()}
    return [shown_value(item) for item in value] if isinstance(value, list) else value


def log_end(service: ObservedProject, stream: StreamPlan) -> Position:
    """The position after the newest record."""
    return service.log_reader(stream).end()


@contextmanager
def records_of(
    service: ObservedProject, stream: StreamPlan, range: PositionRange
) -> Iterator[Records]:
    """A DuckDB connection with the records of a range, closed at the end of the block."""
    import duckdb

    query, definition = service.project.settings.query, service.project.streams[stream.name]
    connection = duckdb.connect(":memory:")
    try:
        with within_time(connection, query.seconds_max):
            register_raw_json(connection)
            known = register_range(connection, stream, range, service.layout, query.scan_max)
            computed = register_computed(connection, stream, records_name(stream.name), _COMPUTED)
            columns = [c for c in stream.columns if c.generated is None or c.name in computed]
            yield Records(connection, stream, definition, known, tuple(columns))
    finally:
        connection.close()
