"""The balance of a stream, exact to the event at every probe:

    accepted = events + duplicates + dead letters + still in the log.

`accepted` is what the log has acknowledged; the rest is counted in the master's file list, of one
version. tests/master/test_balance.py checks it while events arrive.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from headrace.core.event import ARRIVED_AT, OFFSET, PARTITION, RAW, REASON, STATUS, Status
from headrace.core.position import Position, PositionRange
from headrace.log.decode import Decoder
from headrace.log.protocol import LogReader
from headrace.master.parquet import read_rows, sound
from headrace.master.table import MasterTable, counts
from headrace.master.version import MasterVersion

_SHOWN = [PARTITION, OFFSET, ARRIVED_AT, REASON, RAW]


def balance(version: MasterVersion, end: Position) -> dict[str, int]:
    """What became of all events up to the log's end, by a version of the master."""
    found, archived = counts(version.files), version.position
    # What was archived since `end` was asked for was accepted too, so the end is moved with it.
    end = end.latest(archived)
    return {
        "accepted": sum(end.offsets),
        "events": found[Status.EVENT.word],
        "duplicates": found[Status.DUPLICATE.word],
        "dead_letters": found[Status.DEAD_LETTER.word],
        "in_log": end - archived,
    }


@dataclass(frozen=True, slots=True)
class Letters:
    """The newest dead letters, and what became of all records, in the log and in the master."""

    newest: list[dict[str, object]]
    records: dict[str, int]  # by what became of them: event, duplicate, dead_letter

    @property
    def total(self) -> int:
        return self.records[Status.DEAD_LETTER.word]


def letters(table: MasterTable, decoder: Decoder, reader: LogReader, limit: int) -> Letters:
    """The newest dead letters, from the log's tail first and then from the master, and all records
    counted up to the same end of the log.
    """
    version = table.newest()
    tail = _tail(version, decoder, reader)
    records = counts(version.files)
    for status in Status:
        records[status.word] += sum(len(_with(part, status)) for part in tail)
    found: list[dict[str, object]] = []
    for part in _newest_first(version, tail, table.schema):
        rows = part.sort_by([(ARRIVED_AT, "descending"), (OFFSET, "descending")])
        found += rows.slice(0, limit - len(found)).to_pylist()
        if len(found) >= limit:
            break
    return Letters(found, records)


def _tail(version: MasterVersion, decoder: Decoder, reader: LogReader) -> list[pa.Table]:
    """The records that are not archived, a table for each partition."""
    archived = version.position
    tail = PositionRange(archived, reader.end().latest(archived))
    return [
        decoder.decode(reader.blocks(partition, interval), partition, None, raw=True).table
        for partition, interval in tail.intervals()
    ]


def _with(part: pa.Table, status: Status) -> pa.Table:
    return part.filter(pc.equal(part[STATUS], int(status)))


def _newest_first(
    version: MasterVersion, tail: list[pa.Table], schema: pa.Schema
) -> Iterator[pa.Table]:
    if tail:
        yield pa.concat_tables(_with(part, Status.DEAD_LETTER).select(_SHOWN) for part in tail)
    files = [file for file in version.files if file.status == Status.DEAD_LETTER.word]
    days = sorted({file.day for file in files}, reverse=True)
    for day in days:
        found = [file for file in files if file.day == day]
        sound(found)
        yield read_rows(found, schema, _SHOWN)
