"""The records of a master that were not duplicates when they were accepted, with their bytes: the
ids that deduplication must know.

A record that could not be decoded is a dead letter in the master, but its id was registered when
the log accepted it. Records that the log has marked as refused, such as conflicts, have registered
no id. A master that ends before the range is an error: an id that was not read would be accepted
again. tests/master/test_originals.py compares with the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from headrace.core.errors import CorruptMaster
from headrace.core.event import OFFSET, RAW, REASON, EventStatus
from headrace.core.position import Interval
from headrace.log.decode import MARKED
from headrace.master.parquet import read_in_order, verify_files
from headrace.master.version import MasterFile, newest_version

_MARKED = pa.array(MARKED.values(), pa.string())
_ORIGINAL = (EventStatus.EVENT.word, EventStatus.DEAD_LETTER.word)


def originals(
    path: Path, partitions: int, partition: int, interval: Interval
) -> Iterator[tuple[Sequence[bytes], int]]:
    """The originals of a partition's range, in batches; the last one has the end of the range."""
    version = newest_version(path, partitions)
    held = version.position.offsets[partition] if version else 0
    if version is None or held < interval.upper:
        raise CorruptMaster(
            f"records are missing in partition {partition} of '{path.name}': the master dataset "
            f"ends at offset {held}, and the log starts at offset {interval.upper}",
            detail="the ids of the missing records are unknown, so duplicates could be accepted.",
            hint="restore a complete backup with `headrace restore`.",
            origin=str(path),
        )
    wanted = [file for file in version.files if _wanted(file, partition, interval)]
    verify_files(wanted)
    offset = pc.field(OFFSET)
    inside = (offset >= interval.lower) & (offset < interval.upper)
    for batch in read_in_order(wanted, [RAW, REASON], inside) if wanted else ():
        refused = pc.is_in(batch.column(REASON), _MARKED)
        yield batch.filter(pc.invert(refused)).column(RAW).to_pylist(), interval.lower
    yield [], interval.upper


def _wanted(file: MasterFile, partition: int, interval: Interval) -> bool:
    held = Interval(file.first_offset, file.next_offset)
    return file.partition == partition and file.status in _ORIGINAL and held.overlaps(interval)
