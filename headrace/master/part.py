"""A part of a master for one task: events of a range, in tables of bounded size.

The parts of a range have each of its events once. A file is in one part as a whole, and its bytes
are compared with its digest before they are read. tests/master/test_part.py checks both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from headrace.core.event import OFFSET
from headrace.core.position import PositionRange
from headrace.master.parquet import read_in_order, verify_files
from headrace.master.version import MasterFile

TABLE_ROWS = 1 << 19  # of one table: enough for a vectorised engine, and some 50 MB


@dataclass(frozen=True, slots=True)
class MasterPart:
    """Files with events of one range; it travels to an executor."""

    files: tuple[MasterFile, ...]
    range: PositionRange
    schema: pa.Schema  # the columns to read

    def tables(self) -> Iterator[pa.Table]:
        """Its events; at least one table, which may be empty."""
        verify_files(self.files)
        batches, rows = [], 0
        for batch in self._batches():
            batches.append(batch)
            rows += batch.num_rows
            if rows >= TABLE_ROWS:
                yield pa.Table.from_batches(batches)
                batches, rows = [], 0
        if batches or not self.files:
            yield pa.Table.from_batches(batches, self.schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        wanted = dict(self.range.intervals())
        for file in self.files:
            interval, where = wanted[file.partition], None
            if file.first_offset < interval.lower or interval.upper < file.next_offset:
                offset = pc.field(OFFSET)
                where = (offset >= interval.lower) & (offset < interval.upper)
            yield from read_in_order([file], self.schema, where)


def parts_of(
    files: Sequence[MasterFile], range: PositionRange, schema: pa.Schema, rows: int
) -> list[MasterPart]:
    """The files in parts of about so many rows; one part at least, so that a task runs."""
    parts: list[list[MasterFile]] = [[]]
    for file in files:
        if parts[-1] and sum(one.rows for one in parts[-1]) + file.rows > rows:
            parts.append([])
        parts[-1].append(file)
    return [MasterPart(tuple(part), range, schema) for part in parts]
