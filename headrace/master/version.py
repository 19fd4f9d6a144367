"""One version of a master: how far it goes, the highest event times there, and its files. They
belong together, so whoever needs two of them takes them from one version.

A version never changes, and is kept until there is a newer one: to read Delta's log costs
milliseconds, and a thread for each commit since the last checkpoint. tests/master/test_table.py
checks that a newer one is seen, whoever makes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.core.event import OFFSET, STATUS
from headrace.core.position import Position

# What files are set apart by, beside their status: the day of arrival, and the log's partition once
# more. Offsets of two partitions say nothing of each other, so no file has both.
DAY, LANE = "_day", "_lane"


@dataclass(frozen=True, slots=True)
class MasterFile:
    """One Parquet file of the table and what is known of it without opening it."""

    path: str
    rows: int
    bytes: int
    status: str
    day: str
    partition: int
    first_offset: int
    next_offset: int


class MasterVersion:
    """What the table was after one of its commits."""

    def __init__(self, path: Path, partitions: int) -> None:
        from deltalake import DeltaTable

        self._path, self._log = path, path / "_delta_log"
        self._changed_at = self._log.stat().st_mtime_ns
        self.delta: Any = DeltaTable(str(path))
        found = (self.delta.transaction_version(f"offset-{n}") for n in range(partitions))
        #: All events before this position are in the table.
        self.position = Position(tuple(version or 0 for version in found))
        #: The highest event time in each partition, up to the position.
        self.highs: tuple[int | None, ...] = tuple(
            self.delta.transaction_version(f"high-{n}") for n in range(partitions)
        )
        self._next = self._log / f"{self.delta.version() + 1:020}.json"

    def is_newest(self) -> bool:
        """Whether no commit has come since. They are numbered one after the other, and one that
        is no longer there because Delta has summed it up has changed the folder.
        """
        return not self._next.exists() and self._log.stat().st_mtime_ns == self._changed_at

    @cached_property
    def columns(self) -> frozenset[str]:
        return frozenset(field.name for field in self.delta.schema().fields)

    @cached_property
    def files(self) -> tuple[MasterFile, ...]:
        rows = pa.table(self.delta.get_add_actions(flatten=True)).to_pylist()
        return tuple(
            MasterFile(
                str(self._path / row["path"]),
                row["num_records"],
                row["size_bytes"],
                row[f"partition.{STATUS}"],
                row[f"partition.{DAY}"],
                int(row[f"partition.{LANE}"]),
                row[f"min.{OFFSET}"],
                row[f"max.{OFFSET}"] + 1,
            )
            for row in rows
        )
