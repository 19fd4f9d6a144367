"""A damaged file of a master is written again from the log, as long as the log has its range.

The files of one status, day and partition do not overlap, so the records of a file are exactly
those of its range with its status and day. Lateness was decided by the highest event time before
them, which the files before it have. If the number of records is another one, nothing changes.
tests/master/test_repair.py compares every row with what was there before.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from headrace.compile.plan import StreamPlan
from headrace.core.errors import CorruptMaster
from headrace.core.event import ARRIVED_AT, OFFSET, STATUS, Status
from headrace.core.position import Interval
from headrace.core.time import DAY as DAY_US
from headrace.core.time import from_iso
from headrace.master.archive import ArchiveTask, decoded_parts, decoder_of
from headrace.master.parquet import FileWriter, read_rows, sound
from headrace.master.table import MasterTable
from headrace.master.version import MasterFile, MasterVersion


def repair(stream: StreamPlan, log: Path, table: MasterTable, file: MasterFile) -> None:
    """Write a file of the newest version again; CorruptMaster, CorruptLog or NotFound if the log
    does not have its records.
    """
    version = table.newest()
    interval = Interval(file.first_offset, file.next_offset)
    high = _high_before(stream, table, version, file)
    task = ArchiveTask(log, table.path, decoder_of(stream), file.partition, interval, high)
    made = _written(task, table.schema, file)
    if made.rows != file.rows:
        raise CorruptMaster(
            f"the log has {made.rows} of the {file.rows} records of a damaged file",
            hint="restore a backup.",
            origin=file.path,
        )
    # The same rows written in the same parts are the same bytes, which have the same name.
    if made.digest != file.digest:
        table.replace(version, [file], [made])


def _written(task: ArchiveTask, schema: pa.Schema, file: MasterFile) -> MasterFile:
    writer = FileWriter(task.master, schema, (file.status, file.day, file.partition))
    status = next(status for status in Status if status.word == file.status)
    day = from_iso(f"{file.day}T00:00:00Z") // DAY_US
    for decoded in decoded_parts(task):
        days = pc.divide(decoded.table[ARRIVED_AT].cast(pa.int64()), DAY_US)
        wanted = pc.and_(pc.equal(days, day), pc.equal(decoded.table[STATUS], int(status)))
        writer.write(decoded.table.filter(wanted))
    return writer.close()


def _high_before(
    stream: StreamPlan, table: MasterTable, version: MasterVersion, file: MasterFile
) -> int | None:
    """The highest event time before a file's first record, as far as it moves the watermark."""
    if stream.watermark is None:
        return None
    files = [
        one
        for one in version.files
        if (one.status, one.partition) == (Status.EVENT.word, file.partition)
        and one.first_offset < file.first_offset
    ]
    if not files:
        return None
    sound(files)
    column = stream.schema.find(stream.watermark[0])
    assert column is not None
    before = ds.field(OFFSET) < file.first_offset
    rows = read_rows(files, table.schema, [column.name, ARRIVED_AT], before)
    times, arrived = (rows[name].cast(pa.int64()) for name in (column.name, ARRIVED_AT))
    moving = pc.less_equal(times, pc.add(arrived, stream.ahead_us))
    highest: int | None = pc.max(times.filter(moving)).as_py()
    return highest
