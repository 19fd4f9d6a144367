"""Compaction: the small files that archive steps leave in a day become larger ones. Rows, position
and event times stay the same.

The rows are moved in a Spark executor, as the archive moves them: the process that answers has
better uses for its memory. tests/master/test_compact.py checks what stays.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from headrace.core.event import STATUS
from headrace.core.failpoint import failpoint
from headrace.master.table import KEPT_HOURS, MasterTable
from headrace.master.version import DAY, LANE

SMALL_BYTES = 16 << 20
# A file of this size is left alone, so that a row is moved a few times and not ever again. Small
# ones always find room beside each other.
LARGE_BYTES = 4 * SMALL_BYTES


def compact(spark: Any, table: MasterTable, files_max: int) -> bool:
    """Merge the small files of each day that has so many; whether there was one."""
    small = (file for file in table.newest().files if file.bytes < SMALL_BYTES)
    days = Counter((file.status, file.day, file.partition) for file in small)
    crowded = [(str(table.path), *day) for day, files in days.items() if files >= files_max]
    if not crowded:
        return False
    spark.sparkContext.parallelize(crowded, 1).map(_merge).collect()
    failpoint("archive.compacted")
    # All that no version names, also what a process had written when it was killed.
    table.newest().delta.vacuum(
        retention_hours=KEPT_HOURS, enforce_retention_duration=False, dry_run=False, full=True
    )
    return True


def _merge(crowded: tuple[str, str, str, int]) -> None:
    from deltalake import DeltaTable

    path, status, day, partition = crowded
    where = [(STATUS, "=", status), (DAY, "=", day), (LANE, "=", str(partition))]
    DeltaTable(path).optimize.compact(partition_filters=where, target_size=LARGE_BYTES)
