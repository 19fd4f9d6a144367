"""A stream as DuckDB sees it: the master's files, and the log's records after them.

Two relations are made of it. `records_name(stream)` has all records, with their status and bytes.
The stream's own name has its events, without those that speed has shed and no boundary has
absorbed: that is not in the answer. tests/audit/test_events.py checks both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headrace.audit import raw_json
from headrace.compile.plan import StreamPlan
from headrace.core.event import (
    ARRIVED_AT,
    HIDDEN,
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
from headrace.define.layout import Layout
from headrace.log.opening import open_reader
from headrace.log.protocol import LogReader
from headrace.master.decoding import declared_schema, decoder_of
from headrace.master.parquet import verify_files
from headrace.master.table import MasterTable, event_files
from headrace.master.version import MasterFile
from headrace.serving.store import ShedEpoch

_PLACE = f"{PARTITION}, {OFFSET}"


def records_name(stream: str) -> str:
    """The relation with all records of a stream."""
    return f'"_every_{stream}"'


def register_stream(
    connection: Any,
    stream: StreamPlan,
    position: Position,
    layout: Layout,
    shed: Sequence[ShedEpoch] = (),
) -> None:
    """Register a stream's records up to `position`, and its events that are not shed."""
    register_records(connection, stream, position, layout)
    condition = f"{STATUS} = {int(EventStatus.EVENT)}"
    if shed:
        connection.register(f"_shed_{stream.name}", shed_positions(shed))
        condition += f' AND ({_PLACE}) NOT IN (SELECT ({_PLACE}) FROM "_shed_{stream.name}")'
    name_events(connection, stream, records_name(stream.name), condition)


def name_events(connection: Any, stream: StreamPlan, records: str, condition: str) -> None:
    """Make the stream's name a view of the records for which the condition holds, with their stored
    columns: a view's definition has its computed columns itself.
    """
    columns = ", ".join(f'"{name}"' for name in (*stream.schema.stored.names, *HIDDEN))
    columns += f", {raw_json.NAME}({RAW}) AS {RAW}" if stream.raw else ""
    connection.execute(
        f'CREATE OR REPLACE VIEW "{stream.name}" AS SELECT {columns} FROM {records} '
        f"WHERE {condition}"
    )


def shed_positions(shed: Iterable[ShedEpoch]) -> Any:
    """The positions of the events that speed has shed."""
    import numpy as np
    import pyarrow as pa

    found = [pair for one in shed for pair in one.shedding.passed_over(one.range)]
    partitions = [np.full(len(offsets), partition, np.int32) for partition, offsets in found]
    return pa.table(
        {
            PARTITION: np.concatenate([np.empty(0, np.int32), *partitions]),
            OFFSET: np.concatenate([np.empty(0, np.int64), *(offsets for _, offsets in found)]),
        }
    )


def register_records(
    connection: Any, stream: StreamPlan, position: Position, layout: Layout
) -> None:
    """Make `every(stream)` known, up to a position."""
    register_range(connection, stream, PositionRange.before(position), layout)


def register_range(
    connection: Any,
    stream: StreamPlan,
    range: PositionRange,
    layout: Layout,
    tail_max: int | None = None,
) -> bool:
    """Register `records_name(stream)` with the records of a range; returns whether their lateness
    is known.

    Lateness is decided by the whole log before an event. If more than `tail_max` records are not
    yet archived, only those of the range are read, and their lateness is not valid.
    """
    archived, highs, files = _archived(stream, layout)
    # Files that were archived meanwhile are skipped: their events are read from the log.
    cut = archived.earliest(range.upper)
    known = tail_max is None or range.upper - cut <= tail_max
    hot = PositionRange(cut if known else cut.latest(range.lower), range.upper)
    reader = open_reader(layout.log(stream.name))
    tail = _tail(reader, stream, hot, highs if known else (None,) * stream.partitions)
    connection.register(f"_tail_{stream.name}", tail)
    stored = stream.schema.stored.columns
    columns = ", ".join(_plain(c.name, c.type.spark) for c in stored)
    columns += f", {_PLACE}, {_plain(ARRIVED_AT, 'TIMESTAMP')}, {LATE}, {LATENESS}"
    columns += f", {REASON}, {RAW}"
    after = f"NOT {before(range.lower)}"
    parts = [f'SELECT {columns}, {STATUS} FROM "_tail_{stream.name}" WHERE {after}']
    cold = PositionRange(range.lower.earliest(cut), cut)
    for status in EventStatus:
        if paths := verify_files(event_files(files, cold, status)):
            source = f"read_parquet({_listed(paths)}, union_by_name = true"
            source += ", hive_partitioning = false)"
            parts.append(
                f"SELECT {columns}, {int(status)} AS {STATUS} FROM {source} "
                f"WHERE {before(cut)} AND {after}"
            )
    connection.execute(f"CREATE VIEW {records_name(stream.name)} AS {' UNION ALL '.join(parts)}")
    return known


def _archived(
    stream: StreamPlan, layout: Layout
) -> tuple[Position, tuple[int | None, ...], Sequence[MasterFile]]:
    """How far the master has come, the highest event times there, and its files."""
    table = MasterTable(layout.master(stream.name), declared_schema(stream), stream.partitions)
    version = table.newest_or_none()
    if version is None:
        return Position.start(stream.partitions), (None,) * stream.partitions, []
    return version.position, version.highs, version.files


def before(position: Position) -> str:
    """SQL: the record lies before a position."""
    pairs = enumerate(position.offsets)
    return "(" + " OR ".join(f"({PARTITION} = {n} AND {OFFSET} < {o})" for n, o in pairs) + ")"


def _tail(
    reader: LogReader, stream: StreamPlan, range: PositionRange, highs: Sequence[int | None]
) -> Any:
    import pyarrow as pa

    decoder = decoder_of(stream)
    parts = [
        decoder.decode(
            reader.blocks(partition, interval), partition, highs[partition], raw=True
        ).table
        for partition, interval in range.intervals()
    ]
    return pa.concat_tables(parts) if parts else decoder.arrow_schema(raw=True).empty_table()


def _listed(paths: list[str]) -> str:
    return "[" + ", ".join("'" + path.replace("'", "''") + "'" for path in paths) + "]"


def _plain(name: str, type: str) -> str:
    """A column with times in UTC, and maps in the order of their keys, which make them equal."""
    if type == "TIMESTAMP":
        return f'make_timestamp(epoch_us("{name}")) AS "{name}"'
    if type.startswith("MAP<"):
        return f'map_from_entries(list_sort(map_entries("{name}"))) AS "{name}"'
    return f'"{name}"'
