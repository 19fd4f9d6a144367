"""The master dataset of a stream: a Delta table to which whole position ranges are appended, once
each.

Every accepted event is one row, whatever became of it: the partition column `_status` says event,
duplicate or dead_letter. So one commit moves a range, and the balance
    archived = events + duplicates + dead letters
can be read from one version's file list. The position is kept as the table's application
transactions, one a log partition, in the same commit as the files.
tests/master/test_table.py checks this, and that a range is never appended twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.core.event import (
    ARRIVED_AT,
    LATE,
    LATENESS,
    OFFSET,
    PARTITION,
    RAW,
    REASON,
    STATUS,
    Status,
)
from headrace.core.failpoint import failpoint
from headrace.core.position import Position, PositionRange

DAY = "_day"
_HIDDEN = [
    (PARTITION, pa.int32()),
    (OFFSET, pa.int64()),
    (ARRIVED_AT, pa.timestamp("us", "UTC")),
    (LATE, pa.bool_()),
    (LATENESS, pa.int64()),
    (REASON, pa.string()),
    (RAW, pa.binary()),
]


@dataclass(frozen=True, slots=True)
class MasterFile:
    """One Parquet file of the table and what is known of it without opening it."""

    path: str
    rows: int
    bytes: int
    status: str
    day: str
    first_offset: int
    next_offset: int


def file_schema(declared: pa.Schema) -> pa.Schema:
    """The columns of each file: the declared ones, nullable, and the hidden ones."""
    fields = [pa.field(field.name, field.type, nullable=True) for field in declared]
    return pa.schema(fields + [pa.field(name, type) for name, type in _HIDDEN])


class MasterTable:
    """The master dataset of one stream."""

    def __init__(self, path: Path, declared: pa.Schema, partitions: int) -> None:
        self.path, self.partitions = path, partitions
        self.schema = file_schema(declared)
        self._table_schema = self.schema.append(pa.field(STATUS, pa.string())).append(
            pa.field(DAY, pa.string())
        )

    def found(self) -> Any | None:
        """The newest version, if there is one: for readers, who make nothing."""
        from deltalake import DeltaTable

        known = DeltaTable.is_deltatable(str(self.path))
        return DeltaTable(str(self.path)) if known else None

    def open(self) -> Any:
        """The newest version, made if there is none; new declared columns are added."""
        from deltalake import DeltaTable, Schema

        if not DeltaTable.is_deltatable(str(self.path)):
            return DeltaTable.create(
                str(self.path),
                Schema.from_arrow(self._table_schema),
                partition_by=[STATUS, DAY],
                name=self.path.name,
                mode="ignore",  # somebody else may have made it meanwhile
            )
        table = DeltaTable(str(self.path))
        known = {field.name for field in table.schema().fields}
        added = [field for field in self._table_schema if field.name not in known]
        if added:
            table.alter.add_columns(list(Schema.from_arrow(pa.schema(added)).fields))
            return DeltaTable(str(self.path))
        return table

    def progress(self, table: Any = None) -> tuple[Position, tuple[int | None, ...]]:
        """The position and the highest event times before it, both of one version."""
        table = table or self.open()
        found = (table.transaction_version(f"offset-{n}") for n in range(self.partitions))
        highs = tuple(table.transaction_version(f"high-{n}") for n in range(self.partitions))
        return Position(tuple(version or 0 for version in found)), highs

    def position(self) -> Position:
        """All events before this position are in the table."""
        return self.progress()[0]

    def highs(self) -> tuple[int | None, ...]:
        """The highest event time in each partition, up to the position."""
        return self.progress()[1]

    def append(
        self, range: PositionRange, files: Sequence[MasterFile], highs: Sequence[int | None]
    ) -> None:
        """Commit the files that hold `range`, with the position after it, in one transaction."""
        from deltalake import CommitProperties, Transaction
        from deltalake.transaction import AddAction

        table = self.open()
        # The table takes any transaction number, also an older one, so the order is checked here.
        if self.position() != range.lower:
            raise ValueError(f"the master is at {self.position()}, but {range.lower} was archived")
        actions = [
            AddAction(f.path, f.bytes, {STATUS: f.status, DAY: f.day}, 0, True, _statistics(f))
            for f in files
        ]
        marks = [Transaction(f"offset-{n}", offset) for n, offset in enumerate(range.upper.offsets)]
        marks += [
            Transaction(f"high-{n}", high) for n, high in enumerate(highs) if high is not None
        ]
        failpoint("archive.committing")
        table.create_write_transaction(
            actions,
            "append",
            self._table_schema,
            partition_by=[STATUS, DAY],
            commit_properties=CommitProperties(app_transactions=marks),
        )
        failpoint("archive.committed")

    def files(self, table: Any = None) -> list[MasterFile]:
        """The files of the newest version, or of the one that is given."""
        rows = pa.table((table or self.open()).get_add_actions(flatten=True)).to_pylist()
        return [
            MasterFile(
                str(self.path / row["path"]),
                row["num_records"],
                row["size_bytes"],
                row[f"partition.{STATUS}"],
                row[f"partition.{DAY}"],
                row[f"min.{OFFSET}"],
                row[f"max.{OFFSET}"] + 1,
            )
            for row in rows
        ]

    def compact(self, files_max: int, small_bytes: int = 64 << 20) -> bool:
        """Merge small files when there are many; the rows stay the same."""
        files = self.files()
        small = [file for file in files if file.bytes < small_bytes]
        if len(small) < files_max:
            return False
        table = self.open()
        table.optimize.compact(target_size=4 * small_bytes)
        failpoint("archive.compacted")
        # Files that were replaced stay for an hour, for those who still read an older list.
        self.open().vacuum(retention_hours=1, enforce_retention_duration=False, dry_run=False)
        return True


def event_files(
    files: Iterable[MasterFile], range: PositionRange, status: Status = Status.EVENT
) -> list[str]:
    """Paths of the files that may hold events of the range; or records of another status."""
    wanted = dict(range.intervals())
    lower = min((interval.lower for interval in wanted.values()), default=0)
    upper = max((interval.upper for interval in wanted.values()), default=0)
    return [
        file.path
        for file in files
        if file.status == status.word and file.first_offset < upper and lower < file.next_offset
    ]


def counts(files: Iterable[MasterFile]) -> dict[str, int]:
    """Rows by what became of the event."""
    totals = {status.word: 0 for status in Status}
    for file in files:
        totals[file.status] += file.rows
    return totals


def _statistics(file: MasterFile) -> str:
    return json.dumps(
        {
            "numRecords": file.rows,
            "minValues": {OFFSET: file.first_offset},
            "maxValues": {OFFSET: file.next_offset - 1},
            "nullCount": {},
        }
    )
