"""One version of a master: its end position, the highest event times there, and its files. They are
consistent only within one version.

What the Delta log says is checked before it is used: the position and the times have a checksum, a
file's place is its path, and the files hold as many records as the position says.
tests/master/test_damage.py changes each.

A version is immutable and is cached until there is a newer one: reading Delta's log takes
milliseconds, and a thread for each commit since the last checkpoint. tests/master/test_table.py
checks that a newer version is noticed, whichever process commits it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import pyarrow as pa

from headrace.core.errors import CorruptMaster
from headrace.core.event import OFFSET, STATUS
from headrace.core.format_version import FormatVersions
from headrace.core.position import Position

# The partition columns besides the status: the day of arrival, and the partition of the log.
# Offsets of two log partitions cannot be compared, so no file has records of both.
DAY, LANE = "_day", "_lane"
# The format version of a master is a property of its table. Version 0 lacks the property, and
# version 1 the checksum.
MASTER, FORMAT = FormatVersions("master", newest=2), "headrace.format"
_CHECKSUM, _CHECKED_SINCE = "checksum", 2
_NUMBERS = ("num_records", "size_bytes", f"min.{OFFSET}", f"max.{OFFSET}")  # of a file


def transactions_of(position: Position, highs: Sequence[int | None]) -> dict[str, int]:
    """The application transactions of a version: its position, the highest event times there, and
    the checksum of both.
    """
    marks = {f"offset-{n}": offset for n, offset in enumerate(position.offsets)}
    marks |= {f"high-{n}": high for n, high in enumerate(highs) if high is not None}
    return {**marks, _CHECKSUM: crc32(msgspec.json.encode(marks))}


def folder_of(status: Any, day: Any, lane: Any) -> str:
    """The folder of a file within its table, which says the values of its partition columns."""
    return f"{STATUS}={status}/{DAY}={day}/{LANE}={lane}"


@dataclass(frozen=True, slots=True)
class MasterFile:
    """One Parquet file of the table, as the Delta log describes it."""

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
        """The stream of the file, taken from its path."""
        return Path(self.path).parents[3].name


class MasterVersion:
    """A snapshot of the table after one of its commits."""

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
        if self.format >= _CHECKED_SINCE:
            self._check_transactions()
        self._next = self._log / f"{self.delta.version() + 1:020}.json"

    def is_newest(self) -> bool:
        """Whether there is no later commit. Commits have consecutive numbers; one that was already
        removed after a checkpoint has changed the folder's modification time.
        """
        return not self._next.exists() and self._log.stat().st_mtime_ns == self._changed_at

    def name_of(self, file: MasterFile) -> str:
        """The path of a file within the table."""
        return str(Path(file.path).relative_to(self._path))

    @cached_property
    def columns(self) -> frozenset[str]:
        return frozenset(field.name for field in self.delta.schema().fields)

    @cached_property
    def files(self) -> tuple[MasterFile, ...]:
        rows = pa.table(self.delta.get_add_actions(flatten=True)).to_pylist()
        files = tuple(map(self._file, rows))
        self._check(files)
        return files

    def _file(self, row: dict[str, Any]) -> MasterFile:
        path = Path(row["path"])
        place: list[Any] = [row.get(f"partition.{column}") for column in (STATUS, DAY, LANE)]
        numbers: list[Any] = [row.get(name) for name in _NUMBERS]
        if (listed := folder_of(*place)) != str(path.parent):
            raise _inconsistent(
                self._path, f"{path.name} is listed in {listed}, but its path is {path.parent}"
            )
        if None in numbers:
            raise _inconsistent(self._path, f"the entry of {path.name} is not complete")
        (status, day, lane), (rows, size, first, last) = place, numbers
        return MasterFile(
            str(self._path / path), rows, size, status, day, int(lane), first, last + 1
        )

    def _check_transactions(self) -> None:
        found = self.delta.transaction_version(_CHECKSUM)
        if found is None and self.position == Position.start(len(self.highs)):
            return  # nothing was appended yet
        if found != transactions_of(self.position, self.highs)[_CHECKSUM]:
            raise _inconsistent(
                self._path,
                f"the checksum of position {self.position} and its highest event times does not "
                "match",
            )

    def _check(self, files: tuple[MasterFile, ...]) -> None:
        """Every record before the position is in exactly one file, so the counts must agree."""
        held = [0] * len(self.position.offsets)
        for file in files:
            held[file.partition] += file.rows
            if not 0 <= file.first_offset <= file.next_offset - file.rows:
                raise _inconsistent(
                    self._path,
                    f"{Path(file.path).name} is listed with {file.rows} records at offsets "
                    f"[{file.first_offset}, {file.next_offset})",
                )
        for partition, (rows, offset) in enumerate(zip(held, self.position.offsets, strict=True)):
            if rows != offset:
                raise _inconsistent(
                    self._path,
                    f"partition {partition} ends at offset {offset}, but its files contain {rows} "
                    "records",
                )


def _inconsistent(path: Path, what: str) -> CorruptMaster:
    return CorruptMaster(
        f"the Delta log of the master dataset of '{path.name}' is inconsistent: {what}",
        hint="restore a backup of the master dataset; this command has changed nothing.",
        origin=str(path / "_delta_log"),
    )


def newest_version(path: Path, partitions: int) -> MasterVersion | None:
    """The newest version of the table at a path, if there is one."""
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        return MasterVersion(path, partitions) if DeltaTable.is_deltatable(str(path)) else None
    except DeltaError as error:
        raise _inconsistent(path, str(error)) from error
