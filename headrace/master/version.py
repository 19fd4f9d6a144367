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

from headrace.core.errors import CorruptMaster
from headrace.core.event import OFFSET, STATUS
from headrace.core.format_version import FormatVersions
from headrace.core.position import Position

# What files are set apart by, beside their status: the day of arrival, and the log's partition once
# more. Offsets of two partitions say nothing of each other, so no file has both.
DAY, LANE = "_day", "_lane"
# The version of a master's format is a property of its table. Version 0 has none, and is the same.
MASTER, FORMAT = FormatVersions("master", newest=1), "headrace.format"


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

    @property
    def digest(self) -> str:
        """The SHA-256 of its bytes."""
        return Path(self.path).stem

    @property
    def stream(self) -> str:
        """Whose master it is of, for a file of a version."""
        return Path(self.path).parents[3].name


class MasterVersion:
    """What the table was after one of its commits."""

    def __init__(self, path: Path, partitions: int) -> None:
        from deltalake import DeltaTable

        self._path, self._log = path, path / "_delta_log"
        self._changed_at = self._log.stat().st_mtime_ns
        self.delta: Any = DeltaTable(str(path))
        self.format = int(self.delta.metadata().configuration.get(FORMAT, 0))
        MASTER.check(self.format, path)
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

    def name_of(self, file: MasterFile) -> str:
        """The name under which the table knows a file of this version."""
        return str(Path(file.path).relative_to(self._path))

    @cached_property
    def columns(self) -> frozenset[str]:
        return frozenset(field.name for field in self.delta.schema().fields)

    @cached_property
    def files(self) -> tuple[MasterFile, ...]:
        rows = pa.table(self.delta.get_add_actions(flatten=True)).to_pylist()
        files = tuple(
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
        self._check(files)
        return files

    def _check(self, files: tuple[MasterFile, ...]) -> None:
        """Every record before the position is in one file, so the numbers of the log must agree."""
        held = [0] * len(self.position.offsets)
        for file in files:
            held[file.partition] += file.rows
            if not 0 <= file.first_offset <= file.next_offset - file.rows:
                raise self._contradiction(
                    f"{Path(file.path).name} is said to hold {file.rows} records with offsets "
                    f"[{file.first_offset}, {file.next_offset})"
                )
        for partition, (rows, offset) in enumerate(zip(held, self.position.offsets, strict=True)):
            if rows != offset:
                raise self._contradiction(
                    f"partition {partition} ends at offset {offset}, and its files hold {rows} "
                    "records"
                )

    def _contradiction(self, told: str) -> CorruptMaster:
        return CorruptMaster(
            f"the Delta log of the master of '{self._path.name}' contradicts itself: {told}",
            hint="restore a backup; nothing was changed.",
            origin=str(self._log),
        )


def found_version(path: Path, partitions: int) -> MasterVersion | None:
    """The newest version of the table at a path, if there is one."""
    from deltalake import DeltaTable

    return MasterVersion(path, partitions) if DeltaTable.is_deltatable(str(path)) else None
