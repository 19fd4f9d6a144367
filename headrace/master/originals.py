"""The records of a master that were no duplicates when they were accepted, with their bytes.

A record that could not be read later is a dead letter here and was an event in the log, where its
id was taken. What the log marks as refused, such as a conflict, was none. A master that does not go
as far as the range is refused: an id that was not read would be taken for a new one.
tests/master/test_originals.py compares with the log.
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
from headrace.master.parquet import read_in_order, sound
from headrace.master.version import MasterFile, found_version

_MARKED = pa.array(MARKED.values(), pa.string())
_ORIGINAL = (EventStatus.EVENT.word, EventStatus.DEAD_LETTER.word)


def originals(
    path: Path, partitions: int, partition: int, interval: Interval
) -> Iterator[tuple[Sequence[bytes], int]]:
    """The originals of a partition's range, in batches; with the last one comes its end."""
    version = found_version(path, partitions)
    held = version.position.offsets[partition] if version else 0
    if version is None or held < interval.upper:
        raise CorruptMaster(
            f"the master of '{path.name}' ends at offset {held} of partition {partition}, and the "
            f"log begins at {interval.upper}",
            detail="the ids of the records between are not known, so they could be counted twice.",
            hint="restore a whole backup with `headrace restore`.",
            origin=str(path),
        )
    wanted = [file for file in version.files if _wanted(file, partition, interval)]
    sound(wanted)
    offset = pc.field(OFFSET)
    inside = (offset >= interval.lower) & (offset < interval.upper)
    for batch in read_in_order(wanted, [RAW, REASON], inside) if wanted else ():
        refused = pc.is_in(batch.column(REASON), _MARKED)
        yield batch.filter(pc.invert(refused)).column(RAW).to_pylist(), interval.lower
    yield [], interval.upper


def _wanted(file: MasterFile, partition: int, interval: Interval) -> bool:
    held = Interval(file.first_offset, file.next_offset)
    return file.partition == partition and file.status in _ORIGINAL and held.overlaps(interval)
