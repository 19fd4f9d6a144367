"""The records of a master that were no duplicates when they were accepted, with their bytes.

A record that could not be read later is a dead letter here and was an event in the log, where its
id was taken. Only a conflict was none. tests/master/test_originals.py compares with the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.dataset as ds

from headrace.core.event import OFFSET, RAW, REASON, Status
from headrace.core.position import Interval
from headrace.log.decode import CONFLICT
from headrace.master.parquet import read_in_order, sound
from headrace.master.version import MasterFile, found_version

_ORIGINAL = (Status.EVENT.word, Status.DEAD_LETTER.word)


def originals(
    path: Path, partitions: int, partition: int, interval: Interval
) -> Iterator[tuple[Sequence[bytes], int]]:
    """The originals of a partition's range, in batches; with the last one comes its end."""
    version = found_version(path, partitions)
    files = version.files if version else ()
    wanted = [file for file in files if _wanted(file, partition, interval)]
    sound(wanted)
    offset = ds.field(OFFSET)
    inside = (offset >= interval.lower) & (offset < interval.upper)
    for batch in read_in_order(wanted, [RAW, REASON], inside) if wanted else ():
        conflicts = pc.equal(batch.column(REASON), CONFLICT).fill_null(False)
        yield batch.filter(pc.invert(conflicts)).column(RAW).to_pylist(), interval.lower
    yield [], interval.upper


def _wanted(file: MasterFile, partition: int, interval: Interval) -> bool:
    held = Interval(file.first_offset, file.next_offset)
    return file.partition == partition and file.status in _ORIGINAL and held.overlaps(interval)
