"""A stream's whole history as relations for Spark: the master's files, and the rest of the log.

It is read beside a running project and makes nothing: a stream that never ran has no events.
tests/run/test_questions.py and tests/run/test_rehearsal.py read through it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from headrace.compile.passes import HIDDEN_DDL
from headrace.compile.plan import StreamPlan, TablePlan
from headrace.compile.resolve import HIDDEN
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
    layout: Layout, stream: StreamPlan, folder: Path, condition: str | None = None
) -> tuple[list[Relation], Position]:
    """The stream's events, of those for which the condition holds, and the position after them.

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
    _write_tail(log, stream, PositionRange(archived, end), highs, hot)
    return _relations(stream, paths, hot, condition), end


def table_relation(table: TablePlan, folder: Path) -> Relation:
    """A table as it is now."""
    defaults = {"header": "true"} if table.format == "csv" else {}
    path = str((folder / table.location).resolve())
    return Relation(table.name, table.format, [path], table.ddl, defaults | dict(table.options))


def _relations(
    stream: StreamPlan, paths: list[str], hot: Path, condition: str | None
) -> list[Relation]:
    ddl = f"{stream.schema.stored_ddl}, {HIDDEN_DDL}"
    columns = typed_items(stream)
    parts = [f"SELECT {columns} FROM `_{stream.name}_log`"]
    made = [Relation(f"_{stream.name}_log", "arrow_file", [str(hot)], ddl, hidden=True)]
    if paths:
        made.append(Relation(f"_{stream.name}_master", "parquet", paths, ddl, hidden=True))
        parts.append(f"SELECT {columns} FROM `_{stream.name}_master`")
    query = " UNION ALL ".join(parts)
    return [*made, Relation(stream.name, query=query, filter=condition)]


def typed_items(stream: StreamPlan) -> str:
    """SQL: the stored columns of a stream's events, with the types that it declares."""
    variants = stream.schema.variants
    names = (*stream.schema.names, *HIDDEN)
    return ", ".join(f"{variants.get(name, f'`{name}`')} AS `{name}`" for name in names)


def _write_tail(
    reader: LogReader | None,
    stream: StreamPlan,
    range: PositionRange,
    highs: tuple[int | None, ...],
    path: Path,
) -> None:
    decoder = decoder_of(stream)
    schema = events_schema(stream, decoder)

    def parts() -> Iterator[pa.Table]:
        for partition, interval in range.intervals() if reader else ():
            assert reader is not None
            events, _ = logged_events(reader, decoder, partition, interval, highs[partition])
            yield events.select(schema.names)

    write_events(path, schema, parts())


def write_events(path: Path, schema: pa.Schema, parts: Iterable[pa.Table]) -> None:
    """Events as a file that a relation of kind `arrow_file` reads."""
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        # A file without any batch has no columns for its readers.
        writer.write_batch(pa.RecordBatch.from_pylist([], schema))
        for part in parts:
            writer.write_table(part)
