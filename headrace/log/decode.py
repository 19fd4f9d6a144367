"""Blocks of the log -> a table: the declared columns, and the log's own columns of each event.

Every record of the log is one row, in log order, with all declared columns, so the same bytes are a
dead letter for every reader. Cutting a range anywhere changes nothing:
decode(a + b) == decode(a), then decode(b, high of a).
tests/log/test_decode.py checks both; tests/log/test_poison.py feeds it what no decoder likes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.core import event
from headrace.core.errors import BadDefinition, UnknownColumn, Unsupported
from headrace.core.event import EventStatus
from headrace.core.schema import Schema, Type
from headrace.define.definitions import Watermark
from headrace.log.block import Block
from headrace.log.columns import (
    TIME,
    arrow_type,
    convert,
    parsed_from_text,
    unconvertible,
    unreadable_part,
)
from headrace.log.csv_events import CsvEvents
from headrace.log.decode_errors import BadEventError, unreadable
from headrace.log.json_events import JsonEvents
from headrace.log.json_values import default_of
from headrace.log.lateness import lateness

# The reason of a dead letter that is decided before decoding, by its mark in the log.
MARKED = {
    int(EventStatus.DEAD_LETTER): "an earlier event with this id has another body",
    event.OVERLONG: "the event exceeds the size limit; only its beginning was kept",
    event.DAMAGED: "the file is damaged at this event; only the readable part was kept",
}
_CHUNK_RECORDS, _CHUNK_BYTES = 16_384, 8 << 20
# As plain integers: comparing with an enum costs more than decoding a short event.
_EVENT = int(EventStatus.EVENT)
Times = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class DecodedEvents:
    """A table, and the highest event time after it; None before the first or without watermark."""

    table: pa.Table
    high_us: int | None


@dataclass(slots=True)
class _Chunk:
    """Some adjacent blocks while they are decoded: one row, status and perhaps reason a record."""

    blocks: list[Block]
    lengths: NDArray[np.uint32]
    statuses: NDArray[np.int8]
    body: bytes | None  # of all blocks; None if one of them is framed
    rows: list[Any]
    walked: dict[int, list[Any]]  # the values of the columns that are not read with their row
    reasons: dict[int, str]

    @staticmethod
    def of(blocks: list[Block]) -> _Chunk:
        framed = any(block.framed for block in blocks)
        return _Chunk(
            blocks,
            np.concatenate([block.lengths for block in blocks]),
            np.concatenate([block.statuses for block in blocks]).astype(np.int8),
            None if framed else b"".join([block.body for block in blocks]),
            rows=[],
            walked={},
            reasons={},
        )

    def records(self) -> list[bytes]:
        if self.body is not None:
            return self.body.split(b"\n")[:-1]
        return [record for block in self.blocks for record in block.records()]

    def refuse(self, row: int, blank: Any, reason: str) -> None:
        self.rows[row], self.reasons[row] = blank, reason
        self.statuses[row] = EventStatus.DEAD_LETTER
        for values in self.walked.values():
            values[row] = None


class Decoder:
    """Decodes the events of one stream; pickled as what it was made from."""

    def __init__(
        self, schema: Schema, format: str = "json", watermark: Watermark | None = None
    ) -> None:
        self.schema, self.format, self.watermark = schema, format, watermark
        if format not in ("json", "csv"):
            raise Unsupported(
                f"the event format '{format}' is not supported", hint="use json or csv."
            )
        self._events = JsonEvents(schema) if format == "json" else CsvEvents(schema)
        self._defaults = [default_of(column) for column in schema.columns]
        self._time_column = self._index(watermark.column) if watermark else None
        time = schema.columns[self._time_column] if self._time_column is not None else None
        if time is not None and time.type != Type("TIMESTAMP"):
            raise BadDefinition(
                f"the watermark column '{time.name}' must be TIMESTAMP, got {time.type.spark}"
            )

    def __reduce__(self) -> tuple[type[Decoder], tuple[Schema, str, Watermark | None]]:
        return Decoder, (self.schema, self.format, self.watermark)

    def arrow_schema(self, raw: bool) -> pa.Schema:
        """The schema of the tables that `decode` makes."""
        fields = [(column.name, arrow_type(column.type)) for column in self.schema.columns]
        fields += [
            (event.PARTITION, pa.int32()),
            (event.OFFSET, pa.int64()),
            (event.ARRIVED_AT, TIME),
            (event.LATE, pa.bool_()),
            (event.LATENESS, pa.int64()),
            (event.STATUS, pa.int8()),
            (event.REASON, pa.string()),
        ]
        return pa.schema(fields + [(event.RAW, pa.binary())] * raw)

    def decode(
        self, blocks: Iterable[Block], partition: int, high_us: int | None, *, raw: bool
    ) -> DecodedEvents:
        """Decode blocks of one partition; `high_us` is the highest event time before them."""
        schema, batches = self.arrow_schema(raw), []
        for group in grouped(blocks, _CHUNK_RECORDS, _CHUNK_BYTES):
            chunk = _Chunk.of(group)
            self._read_rows(chunk)
            self._walk(chunk)
            arrays = self._columns(chunk)
            arrived = _each([block.arrived_at_us for block in group], group)
            late_us, high_us = self._lateness(arrays, arrived, high_us)
            arrays += _log_columns(chunk, partition, arrived, late_us)
            arrays += [_raw(chunk)] if raw else []
            batches.append(pa.record_batch(arrays, schema=schema))
        return DecodedEvents(pa.Table.from_batches(batches, schema), high_us)

    def _read_rows(self, chunk: _Chunk) -> None:
        """All at once if all are valid, else one by one: the rows are the same."""
        if chunk.body is not None and not chunk.statuses.any():
            rows = self._events.rows_of(chunk.body, chunk.lengths)
            if rows is not None:
                chunk.rows = rows
                return
        self._read_rows_one_by_one(chunk)

    def _read_rows_one_by_one(self, chunk: _Chunk) -> None:
        row_of, blank = self._events.row_of, self._events.blank
        rows = chunk.rows = [blank] * len(chunk.lengths)
        statuses = chunk.statuses.tolist()
        for i, (line, status) in enumerate(zip(chunk.records(), statuses, strict=True)):
            if status == _EVENT:
                try:
                    rows[i] = row_of(line)
                except BadEventError as error:
                    chunk.refuse(i, blank, str(error))
            elif status in MARKED:
                chunk.refuse(i, blank, MARKED[status])

    def _walk(self, chunk: _Chunk) -> None:
        """Read what is still JSON in the rows."""
        chunk.walked, reasons = self._events.walked(chunk.rows)
        for row, reason in reasons.items():
            chunk.refuse(row, self._events.blank, reason)

    def _columns(self, chunk: _Chunk) -> list[pa.Array]:
        """The declared columns. Those that may refuse a record are read first: it has no values."""
        columns = self.schema.columns
        checked = [i for i, c in enumerate(columns) if parsed_from_text(c.type) and not c.format]
        try:
            made = {i: self._column(chunk, i) for i in checked}
        except pa.ArrowInvalid:
            for i in checked:
                self._refuse_unreadable(chunk, i)
            made = {i: self._column(chunk, i) for i in checked}
        return [made[i] if i in made else self._column(chunk, i) for i in range(len(columns))]

    def _column(self, chunk: _Chunk, index: int) -> pa.Array:
        column, values = self.schema.columns[index], self._values(chunk, index)
        if column.format:
            return pa.array(values, arrow_type(column.type))
        return convert(column.type, values)

    def _values(self, chunk: _Chunk, index: int) -> list[Any]:
        if index in chunk.walked:
            return chunk.walked[index]
        values = list(map(self._events.getter(index), chunk.rows))
        default, blank = self._defaults[index], self._events.blank
        if default is None:
            return values
        pairs = zip(values, chunk.rows, strict=True)
        return [default if v is None and row is not blank else v for v, row in pairs]

    def _refuse_unreadable(self, chunk: _Chunk, index: int) -> None:
        column, values = self.schema.columns[index], self._values(chunk, index)
        for row in unconvertible(column.type, values):
            part = unreadable_part(column.type, values[row])
            assert part is not None, "a value is refused for a part of it"
            chunk.refuse(row, self._events.blank, unreadable(column, *part))

    def _lateness(
        self, columns: list[pa.Array], arrived: Times, high_us: int | None
    ) -> tuple[Times, int | None]:
        if self.watermark is None or self._time_column is None:
            return np.zeros(len(arrived), np.int64), None
        times = columns[self._time_column]
        known = times.is_valid().to_numpy(zero_copy_only=False)
        times_us = times.view(pa.int64()).fill_null(0).to_numpy()
        mark = self.watermark
        return lateness(times_us, known, arrived, high_us, mark.delay_us, mark.ahead_us)

    def _index(self, name: str) -> int:
        column = self.schema.find(name)
        if column is None:
            known = ", ".join(self.schema.names)
            raise UnknownColumn(
                f"there is no column '{name}'", detail=f"available columns: {known}."
            )
        return self.schema.columns.index(column)


def grouped(
    blocks: Iterable[Block], records_max: int, bytes_max: float = math.inf
) -> Iterator[list[Block]]:
    """Adjacent blocks together, so that many small ones cost no more than a large one; a group ends
    with the block that reaches a limit.
    """
    group: list[Block] = []
    records = size = 0
    for block in blocks:
        if not block.count:
            continue
        group.append(block)
        records, size = records + block.count, size + len(block.body)
        if records >= records_max or size >= bytes_max:
            yield group
            group, records, size = [], 0, 0
    if group:
        yield group


def _each(values: list[int], blocks: list[Block]) -> Times:
    """A value of each block, once for each of its records."""
    return np.repeat(np.array(values, np.int64), [block.count for block in blocks])


def _log_columns(chunk: _Chunk, partition: int, arrived: Times, late_us: Times) -> list[pa.Array]:
    """The log's own columns of each event, in the order of `arrow_schema`."""
    count = len(chunk.rows)
    # Within a block an offset minus the record's place in the chunk is always the same.
    starts = np.cumsum([0] + [block.count for block in chunk.blocks[:-1]])
    shifts = np.array([block.first_offset for block in chunk.blocks]) - starts
    offsets = np.arange(count) + _each(shifts.tolist(), chunk.blocks)
    reasons = pa.nulls(count, pa.string())
    if chunk.reasons:
        reasons = pa.array([chunk.reasons.get(i) for i in range(count)], pa.string())
    return [
        pa.array(np.full(count, partition, np.int32)),
        pa.array(offsets),
        pa.array(arrived).view(TIME),
        pa.array(late_us > 0),
        pa.array(late_us),
        pa.array(chunk.statuses),
        reasons,
    ]


def _raw(chunk: _Chunk) -> pa.Array:
    """The exact bytes of each record, as one buffer and the places where they end."""
    ends = np.concatenate(([0], np.cumsum(chunk.lengths, dtype=np.int64))).astype(np.int32)
    data = chunk.body.replace(b"\n", b"") if chunk.body is not None else b"".join(chunk.records())
    buffers = [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(chunk.lengths), buffers)
