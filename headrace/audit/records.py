"""The records of a range of a stream, read by DuckDB: from the log, and from the master's files
before it (audit/events.py). Computed columns that only Spark can compute are left out.

tests/run/test_search.py reads both, tests/run/test_observatory.py counts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

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
from headrace.core.position import PositionRange
from headrace.define.layout import Layout
from headrace.define.settings import QuerySettings

# The columns of a record before those of its stream.
RECORD_COLUMNS = (PARTITION, OFFSET, ARRIVED_AT, STATUS, REASON, LATE, LATENESS, RAW)
_COMPUTED = "_computed"  # the records with their computed columns
_NEWEST = f"ORDER BY {ARRIVED_AT} DESC, {OFFSET} DESC, {PARTITION} LIMIT ?"
_EVENTS = f"FROM {_COMPUTED} WHERE {STATUS} = {int(EventStatus.EVENT)}"


@dataclass(frozen=True, slots=True)
class Records:
    """The records of a range."""

    connection: Any
    stream: StreamPlan
    lateness_known: bool
    columns: tuple[ColumnPlan, ...]

    def newest(self, limit: int, where: str = "true", values: Sequence[Any] = ()) -> list[Any]:
        """The newest records that meet a condition: `RECORD_COLUMNS`, then the stream's columns."""
        columns = ", ".join([*RECORD_COLUMNS, *self._names()])
        sql = f"SELECT {columns} FROM {_COMPUTED} WHERE {where} {_NEWEST}"
        return self._fetch(sql, [*values, limit])

    def table(self) -> pa.Table:
        """All of them."""
        return self.connection.sql(f"FROM {_COMPUTED}").to_arrow_table()

    def lateness_us(self) -> list[int]:
        """The lateness of each event."""
        return [us for (us,) in self._fetch(f"SELECT {LATENESS} {_EVENTS}")]

    def raw_events(self) -> list[bytes]:
        """The bytes of each event."""
        return [bytes(raw) for (raw,) in self._fetch(f"SELECT {RAW} {_EVENTS}")]

    def counts(self) -> tuple[int, list[int]]:
        """The number of events, and of those in which each column is not NULL."""
        counts = ", ".join(f"count({name})" for name in self._names())
        ((events, *known),) = self._fetch(f"SELECT count(*), {counts} {_EVENTS}")
        return events, known

    def _names(self) -> list[str]:
        return [f'"{column.name}"' for column in self.columns]

    def _fetch(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        return list(self.connection.execute(sql, list(values)).fetchall())


@contextmanager
def open_records(
    stream: StreamPlan, range: PositionRange, layout: Layout, query: QuerySettings
) -> Iterator[Records]:
    """The records of a range, until the end of the block."""
    import duckdb

    connection = duckdb.connect(":memory:")
    try:
        with within_time(connection, query.seconds_max):
            register_raw_json(connection)
            known = register_range(connection, stream, range, layout, query.scan_max)
            computed = register_computed(connection, stream, records_name(stream.name), _COMPUTED)
            columns = [c for c in stream.columns if c.generated is None or c.name in computed]
            yield Records(connection, stream, known, tuple(columns))
    finally:
        connection.close()
