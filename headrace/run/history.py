"""The history of a stream as relations for Spark: the master's files, and the tail of the log.

Nothing is created in the state folder, and the project may be running; a stream that never ran has
no events.
tests/run/test_query_service.py and tests/run/test_rehearsal.py read through it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
from msgspec.structs import replace

from headrace.compile.plan import StreamPlan, TablePlan
from headrace.compile.stored_columns import declared_query, reads_raw, stored_ddl
from headrace.core.position import Position
from headrace.define.layout import Layout
from headrace.log.opening import find_reader
from headrace.master.decoding import declared_schema, decoder_of
from headrace.master.event_range import EventRange, events_schema, read_with_retry
from headrace.master.parquet import verify_files
from headrace.master.table import MasterTable
from headrace.spark.query_client import Relation


def stream_relations(
    layout: Layout,
    stream: StreamPlan,
    folder: Path,
    condition: str | None = None,
    *,
    raw: bool = False,
) -> tuple[list[Relation], Position]:
    """The events of a stream that satisfy the condition, and the position after them; with `raw`,
    they have the column `_raw`.

    Events that are not yet in the master are written to a file in `folder`.
    """
    table = MasterTable(layout.master(stream.name), declared_schema(stream), stream.partitions)
    log = find_reader(layout.log(stream.name))
    tail = folder / f"{stream.name}.arrow"
    decoder = decoder_of(stream)
    schema = events_schema(decoder, raw=reads_raw(stream.schema, named=raw))

    def read() -> EventRange:
        parted = EventRange.whole(table, log)
        logged = parted.logged_events(log, decoder, schema) if log else ()
        write_events(tail, schema, (decoded.table for _, decoded in logged))
        return parted

    parted = read_with_retry(read)
    parts = [Relation("log", "arrow_file", [str(tail)])]
    if paths := verify_files(parted.files()):
        parts.append(Relation("master", "parquet", paths))
    return declared_relations(stream, parts, condition, raw=raw), parted.range.upper


def table_relation(table: TablePlan, folder: Path) -> Relation:
    """The current files of a table."""
    defaults = {"header": "true"} if table.format == "csv" else {}
    path = str((folder / table.location).resolve())
    return Relation(table.name, table.format, [path], table.ddl, defaults | dict(table.options))


def declared_relations(
    stream: StreamPlan,
    parts: Sequence[Relation],
    condition: str | None = None,
    *,
    raw: bool,
    hidden: bool = False,
) -> list[Relation]:
    """The stream under its name with all declared columns, as the union of its stored parts."""
    schema, ddl = stream.schema, stored_ddl(stream.schema, raw=reads_raw(stream.schema, named=raw))
    stored = [
        replace(relation, name=f"_{stream.name}_{relation.name}", schema_ddl=ddl, hidden=True)
        for relation in parts
    ]
    query = " UNION ALL ".join(declared_query(schema, each.name, raw=raw) for each in stored)
    return [*stored, Relation(stream.name, query=query, filter=condition, hidden=hidden)]


def write_events(path: Path, schema: pa.Schema, parts: Iterable[pa.Table]) -> None:
    """Write events to a file for a relation of kind `arrow_file`."""
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        # An empty batch first, because a file without batches has no columns.
        writer.write_batch(pa.RecordBatch.from_pylist([], schema))
        for part in parts:
            writer.write_table(part)
