"""Compaction: the small files that archive steps leave in a day become larger ones. Rows, position
and event times stay the same.

Only files that lie beside each other in the log's order are merged, so the files of a day and
partition never overlap, and one that is damaged can be made again from its range. What is merged is
verified first: damage is never copied into a file that looks sound.
The rows are moved in a Spark executor, as the archive moves them: the process that answers has
better uses for its memory. tests/master/test_compact.py checks what stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.core.failpoint import failpoint
from headrace.master.parquet import FileWriter, read_in_order, sound
from headrace.master.table import MasterTable
from headrace.master.version import MasterFile

SMALL_BYTES = 16 << 20
# A file of this size is left alone, so that a row is moved a few times and not ever again. Small
# ones always find room beside each other.
LARGE_BYTES = 4 * SMALL_BYTES
_GROUP_ROWS = 65_536

Run = list[MasterFile]


@dataclass(frozen=True, slots=True)
class MergeTask:
    """Files that become one; small, because it travels to an executor."""

    master: Path
    schema: pa.Schema
    files: Run


def compact(spark: Any, table: MasterTable, files_max: int) -> bool:
    """Merge the small files of each day that has so many beside each other; whether one had."""
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
    sound(task.files)
    first = task.files[0]
    writer = FileWriter(task.master, task.schema, (first.status, first.day, first.partition))
    for rows in _gathered(read_in_order(task.files, task.schema)):
        writer.write(rows)
    return writer.close()


def _small(files: Iterable[MasterFile]) -> Iterator[Run]:
    """The runs of small files that lie beside each other in the order of the log."""
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


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Many small batches as groups of rows of a size that is worth reading."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= _GROUP_ROWS:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)
