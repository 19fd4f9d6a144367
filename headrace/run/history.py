"""A stream's whole history as relations for Spark: the master's files, and the rest of the log.

It is read beside a running project and makes nothing: a stream that never ran has no events.
tests/run/test_questions.py and tests/run/test_rehearsal.py read through it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from msgspec.structs import replace

from headrace.compile.plan import StreamPlan, TablePlan
from headrace.compile.stored import declared_query, reads_raw, stored_ddl
from headrace.core.position import Position, PositionRange
from headrace.define.layout import Layout
from headrace.log.opening import find_reader
from headrace.log.protocol import LogReader
from headrace.master.decoding import declared_schema, decoder_of
from headrace.master.parquet import sound
from headrace.master.range_reader import events_schema, logged_events
from headrace.master.table import MasterTable, event_files
from headrace.spark.query_client import Relation


def stream_relations(
    layout: Layout,
    stream: StreamPlan,
    folder: Path,
    condition: str | None = None,
    *,
    raw: bool = False,
) -> tuple[list[Relation], Position]:
    """The stream's events, of those for which the condition holds, and the position after them;
    with `raw`, they have the column `_raw`.

    What is not yet in the master is written into `folder`.
    """
    table = MasterTable(layout.master(stream.name), declared_schema(stream), stream.partitions)
    version = table.found()
    archived = Position.start(stream.partitions)
    highs: tuple[int | None, ...] = (None,) * stream.partitions
    paths: list[str] = []
    if version is not None:
        archived, highs = version.position, version.highs
        whole = PositionRange(Position.start(stream.partitions), archived)
        paths = sound(event_files(version.files, whole))
    log = find_reader(layout.log(stream.name))
    end = log.end().latest(archived) if log else archived
    hot = folder / f"{stream.name}.arrow"
    bytes_read = reads_raw(stream.schema, named=raw)
    _write_tail(log, stream, PositionRange(archived, end), highs, hot, raw=bytes_read)
    kept = [Relation("log", "arrow_file", [str(hot)])]
    kept += [Relation("master", "parquet", paths)] if paths else []
    return declared_relations(stream, kept, condition, raw=raw), end


def table_relation(table: TablePlan, folder: Path) -> Relation:
    """A table as it is now."""
    defaults = {"header": "true"} if table.format == "csv" else {}
    path = str((folder / table.location).resolve())
    return Relation(table.name, table.format, [path], table.ddl, defaults | dict(table.options))


def declared_relations(
    stream: StreamPlan,
    kept: Sequence[Relation],
    condition: str | None = None,
    *,
    raw: bool,
    hidden: bool = False,
) -> list[Relation]:
    """The stream under its name, with all columns that it declares, over what is kept of it."""
    schema, ddl = stream.schema, stored_ddl(stream.schema, raw=reads_raw(stream.schema, named=raw))
    stored = [
        replace(relation, name=f"_{stream.name}_{relation.name}", schema_ddl=ddl, hidden=True)
        for relation in kept
    ]
    query = " UNION ALL ".join(declared_query(schema, each.name, raw=raw) for each in stored)
    return [*stored, Relation(stream.name, query=query, filter=condition, hidden=hidden)]


def _write_tail(
    reader: LogReader | None,
    stream: StreamPlan,
    range: PositionRange,
    highs: tuple[int | None, ...],
    path: Path,
    *,
    raw: bool,
) -> None:
    decoder = decoder_of(stream)
    schema = events_schema(decoder, raw=raw)

    def parts() -> Iterator[pa.Table]:
        for partition, interval in range.intervals() if reader else ():
            assert reader is not None
            high = highs[partition]
            events, _ = logged_events(reader, decoder, partition, interval, high, schema)
            yield events

    write_events(path, schema, parts())


def write_events(path: Path, schema: pa.Schema, parts: Iterable[pa.Table]) -> None:
    """Events as a file that a relation of kind `arrow_file` reads."""
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        # A file without any batch has no columns for its readers.
        writer.write_batch(pa.RecordBatch.from_pylist([], schema))
        for part in parts:
            writer.write_table(part)
