"""The balance of a stream, exact to the event whenever it is read:

    accepted = events + duplicates + dead letters + still in the log.

`accepted` is what the log has acknowledged; the rest is counted in the file list of one version of
the master. tests/master/test_balance.py checks it while events arrive.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from headrace.core.event import ARRIVED_AT, OFFSET, PARTITION, RAW, REASON, STATUS, EventStatus
from headrace.core.position import Position
from headrace.log.decode import Decoder
from headrace.log.protocol import LogReader
from headrace.master.event_range import EventRange, read_with_retry
from headrace.master.parquet import read_rows, verify_files
from headrace.master.table import MasterTable, counts
from headrace.master.version import MasterVersion

_SHOWN = [PARTITION, OFFSET, ARRIVED_AT, REASON, RAW]


def balance(version: MasterVersion, end: Position) -> dict[str, int]:
    """The number of records up to the log's end by status, by a version of the master."""
    found, archived = counts(version.files), version.position
    # Records that were archived after `end` was read were accepted too, so the end moves along.
    end = end.latest(archived)
    return {
        "accepted": sum(end.offsets),
        "events": found[EventStatus.EVENT.word],
        "duplicates": found[EventStatus.DUPLICATE.word],
        "dead_letters": found[EventStatus.DEAD_LETTER.word],
        "in_log": end - archived,
    }


@dataclass(frozen=True, slots=True)
class DeadLetterReport:
    """The newest dead letters, and the number of all records, in the log and in the master."""

    newest: list[dict[str, object]]
    records: dict[str, int]  # by status: event, duplicate, dead_letter

    @property
    def total(self) -> int:
        return self.records[EventStatus.DEAD_LETTER.word]


def read_dead_letters(
    table: MasterTable, decoder: Decoder, log: LogReader, limit: int
) -> DeadLetterReport:
    """The newest dead letters, from the log's tail first and then from the master, and all records
    counted up to the same end of the log.
    """
    return read_with_retry(
        lambda: _letters(EventRange.whole(table, log), table, decoder, log, limit)
    )


def _letters(
    split: EventRange, table: MasterTable, decoder: Decoder, log: LogReader, limit: int
) -> DeadLetterReport:
    parts = split.log_intervals(log, decoder)
    tail = [decoded.table for part in parts for decoded in part.decoded(raw=True)]
    records = counts(split.version.files if split.version else ())
    for status in EventStatus:
        records[status.word] += sum(len(_with(part, status)) for part in tail)
    found: list[dict[str, object]] = []
    for part in _newest_first(split, tail, table.schema):
        rows = part.sort_by([(ARRIVED_AT, "descending"), (OFFSET, "descending")])
        found += rows.slice(0, limit - len(found)).to_pylist()
        if len(found) >= limit:
            break
    return DeadLetterReport(found, records)


def _with(part: pa.Table, status: EventStatus) -> pa.Table:
    return part.filter(pc.equal(part[STATUS], int(status)))


def _newest_first(split: EventRange, tail: list[pa.Table], schema: pa.Schema) -> Iterator[pa.Table]:
    if tail:
        yield pa.concat_tables(_with(part, EventStatus.DEAD_LETTER).select(_SHOWN) for part in tail)
    files = split.files(EventStatus.DEAD_LETTER)
    for day in sorted({file.day for file in files}, reverse=True):
        found = [file for file in files if file.day == day]
        verify_files(found)
        yield read_rows(found, schema, _SHOWN)
