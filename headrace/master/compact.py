"""Compaction: the small files that archive steps leave in a day are merged into larger ones. Rows,
position and event times stay the same.

Only files that are adjacent in the log's order are merged, so the files of a day and partition
never overlap, and a damaged one can be written again from its range. Files are verified before they
are merged: damage is never copied into a new file.
The merge runs in a Spark executor, to save the memory of the serving process.
tests/master/test_compact.py checks that the rows are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.core.failpoint import failpoint
from headrace.master.parquet import FileWriter, read_in_order, verify_files
from headrace.master.table import MasterTable
from headrace.master.version import MasterFile

SMALL_BYTES = 16 << 20
# A file of this size is not merged any more, so that a row is rewritten a few times at most. Small
# files always fit into one.
LARGE_BYTES = 4 * SMALL_BYTES
_GROUP_ROWS = 65_536

Run = list[MasterFile]


@dataclass(frozen=True, slots=True)
class MergeTask:
    """Files to merge into one; small, because it is sent to an executor."""

    master: Path
    schema: pa.Schema
    files: Run


def compact(spark: Any, table: MasterTable, files_max: int) -> bool:
    """Merge the small files of each day that has at least `files_max` adjacent ones; returns
    whether there was any.
    """
    version = table.newest()
    crowded = [run for run in _small(version.files) if len(run) >= files_max]
    runs = [part for run in crowded for part in _cut(run) if len(part) > 1]
    if not runs:
        return False
    tasks = [MergeTask(table.path, table.schema, run) for run in runs]
    merged = spark.sparkContext.parallelize(tasks, 1).map(merge).collect()
    table.replace(version, [file for run in runs for file in run], merged)
    failpoint("archive.compacted")
    table.vacuum()
    return True


def merge(task: MergeTask) -> MasterFile:
    """One file with the rows of several, in their order."""
    verify_files(task.files)
    first = task.files[0]
    writer = FileWriter(task.master, task.schema, (first.status, first.day, first.partition))
    for rows in _row_groups(read_in_order(task.files, task.schema)):
        writer.write(rows)
    return writer.close()


def _small(files: Iterable[MasterFile]) -> Iterator[Run]:
    """The runs of small files that are adjacent in the order of the log."""
    ordered = sorted(files, key=lambda file: (*_place(file), file.first_offset))
    for (*_, small), run in groupby(ordered, lambda f: (*_place(f), f.bytes < SMALL_BYTES)):
        if small:
            yield list(run)


def _place(file: MasterFile) -> tuple[str, str, int]:
    return file.status, file.day, file.partition


def _cut(run: Run) -> Iterator[Run]:
    """The run in parts of up to the size of a large file."""
    part: Run = []
    for file in run:
        if part and sum(one.bytes for one in (*part, file)) > LARGE_BYTES:
            yield part
            part = []
        part.append(file)
    yield part


def _row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Small batches combined into row groups of a reasonable size."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= _GROUP_ROWS:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)
