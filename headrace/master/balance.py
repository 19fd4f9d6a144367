"""The balance of a stream, exact to the event at every probe:

    accepted = events + duplicates + dead letters + still in the log.

`accepted` is what the log has acknowledged; the rest is counted in the master's file list, of one
version. tests/master/test_balance.py checks it while events arrive.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headrace.core.event import ARRIVED_AT, OFFSET, PARTITION, RAW, REASON, Status
from headrace.core.position import Position, PositionRange
from headrace.log.decode import Decoder
from headrace.log.reader import TopicReader
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


def dead_letters(
    table: MasterTable, decoder: Decoder, reader: TopicReader, limit: int
) -> list[dict[str, object]]:
    """The newest dead letters: from the log's tail first, then from the master."""
    found: list[dict[str, object]] = []
    for part in _newest_first(table, decoder, reader):
        rows = part.sort_by([(ARRIVED_AT, "descending"), (OFFSET, "descending")])
        found += rows.slice(0, limit - len(found)).to_pylist()
        if len(found) >= limit:
            break
    return found


def _newest_first(table: MasterTable, decoder: Decoder, reader: TopicReader) -> Iterator[pa.Table]:
    version = table.newest()
    archived = version.position
    tail = PositionRange(archived, reader.end().latest(archived))
    parts = []
    for partition, interval in tail.intervals():
        decoded = decoder.decode(
            reader.blocks(partition, interval), partition, None, raw=True
        ).table
        parts.append(
            decoded.filter(pc.equal(decoded["_status"], int(Status.DEAD_LETTER))).select(_SHOWN)
        )
    if parts:
        yield pa.concat_tables(parts)
    files = [file for file in version.files if file.status == Status.DEAD_LETTER.word]
    days = sorted({file.day for file in files}, reverse=True)
    for day in days:
        paths = [file.path for file in files if file.day == day]
        yield pa.concat_tables(
            pq.read_table(path, columns=_SHOWN, partitioning=None) for path in paths
        )
