"""A damaged file of a master is written again from the log, as long as the log has its range.

The files of one status, day and partition do not overlap, so the records of a file are exactly
those of its range with its status and day. Lateness was decided by the highest event time before
them, which is in the files before it. A column that was added later is NULL in older rows: which
columns there were is found by comparing the digest in the file's name. If no set of columns gives
that digest, or the number of records differs, nothing is changed.
tests/master/test_repair.py compares every row with the original.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from headrace.compile.plan import StreamPlan
from headrace.core.address import LogAddress
from headrace.core.errors import CorruptMaster
from headrace.core.event import ARRIVED_AT, OFFSET, STATUS, EventStatus
from headrace.core.position import Interval
from headrace.core.time import DAY as DAY_US
from headrace.core.time import from_iso
from headrace.log.interval import LogInterval
from headrace.log.opening import open_reader
from headrace.master.decoding import declared_of, declared_schema, decoder_of
from headrace.master.parquet import FileWriter, read_rows, verify_files
from headrace.master.table import MasterTable, added_fields, file_schema
from headrace.master.version import MasterFile, MasterVersion, newest_version


def repair(stream: StreamPlan, log: LogAddress, master: Path, file: MasterFile) -> None:
    """Write a file of the newest version again; CorruptMaster, CorruptLog or NotFound if the log
    does not have its records. `stream` is as it was deployed.
    """
    version = newest_version(master, stream.partitions)
    assert version is not None, "a file of a version has a table"
    forms = _forms(stream, version)
    # The table as it is: a deployed column that is not in the table yet is not added here.
    table = MasterTable(master, declared_schema(forms[0]), stream.partitions)
    interval = Interval(file.first_offset, file.next_offset)
    high = _high_before(stream, table, version, file)
    reader = open_reader(log)
    parts = [
        LogInterval(reader, decoder_of(form), file.partition, interval, high) for form in forms
    ]
    made = _rewrite(parts, master, file)
    # The same rows in the same batches give the same bytes, hence the same name.
    if made.digest != file.digest:
        table.replace(version, [file], [made])


def _forms(stream: StreamPlan, version: MasterVersion) -> list[StreamPlan]:
    """The stream with each set of columns that the table has had, the newest first."""
    added = added_fields(pa.schema(version.delta.schema()))
    had = [version.columns - set(added[many:]) for many in range(len(added), -1, -1)]
    return [
        replace(stream, columns=tuple(column for column in stream.columns if column.name in names))
        for names in had
    ]


def _rewrite(parts: list[LogInterval], master: Path, file: MasterFile) -> MasterFile:
    """Write the file with each set of columns until the digest matches. Another digest is accepted
    only if there was one set: compaction has then written the same rows in other batches. Files of
    the other sets are left to a vacuum, because an older version may have a file of that name.
    """
    rows = 0
    for part in parts:
        made = _write(part, master, file)
        if made.digest == file.digest or (len(parts) == 1 and made.rows == file.rows):
            return made
        rows = max(rows, made.rows)
    if len(parts) == 1 or rows < file.rows:
        raise CorruptMaster(
            f"a damaged file cannot be rewritten: the log has only {rows} of its {file.rows} "
            "records",
            hint="restore a backup.",
            origin=file.path,
        )
    raise CorruptMaster(
        "a damaged file cannot be rewritten: it is unknown which of its rows are older than the "
        "columns that were added to the stream",
        detail="older rows have NULL there, and the file was compacted or written by an older "
        "library.",
        hint="restore a backup.",
        origin=file.path,
    )


def _write(part: LogInterval, master: Path, file: MasterFile) -> MasterFile:
    schema = file_schema(declared_of(part.decoder))
    writer = FileWriter(master, schema, (file.status, file.day, file.partition))
    status = next(status for status in EventStatus if status.word == file.status)
    day = from_iso(f"{file.day}T00:00:00Z") // DAY_US
    for decoded in part.decoded(raw=True):
        days = pc.divide(decoded.table[ARRIVED_AT].cast(pa.int64()), DAY_US)
        wanted = pc.and_(pc.equal(days, day), pc.equal(decoded.table[STATUS], int(status)))
        writer.write(decoded.table.filter(wanted))
    return writer.close()


def _high_before(
    stream: StreamPlan, table: MasterTable, version: MasterVersion, file: MasterFile
) -> int | None:
    """The highest event time before a file's first record, of events that move the watermark."""
    if stream.watermark is None:
        return None
    files = [
        one
        for one in version.files
        if (one.status, one.partition) == (EventStatus.EVENT.word, file.partition)
        and one.first_offset < file.first_offset
    ]
    if not files:
        return None
    verify_files(files)
    column = stream.schema.find(stream.watermark[0])
    assert column is not None
    before = pc.field(OFFSET) < file.first_offset
    rows = read_rows(files, table.schema, [column.name, ARRIVED_AT], before)
    times, arrived = (rows[name].cast(pa.int64()) for name in (column.name, ARRIVED_AT))
    moving = pc.less_equal(times, pc.add(arrived, stream.ahead_us))
    highest: int | None = pc.max(times.filter(moving)).as_py()
    return highest
