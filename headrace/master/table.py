"""The master dataset of a stream: a Delta table to which whole position ranges are appended, once
each.

Every accepted record is one row; the partition column `_status` is event, duplicate or dead_letter.
So one commit archives a range, and the balance
    archived = events + duplicates + dead letters
can be read from one version's file list. The position is kept as the table's application
transactions, one a log partition, in the same commit as the files.
Delta does not call fsync, so each commit is synced here before events may be removed elsewhere, and
each checkpoint of the Delta log before the commits that it replaces are removed.
tests/master/test_table.py checks this, and that a range is never appended twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
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
    EventStatus,
)
from headrace.core.failpoint import failpoint
from headrace.core.files import make_folder, sync
from headrace.core.position import Position, PositionRange
from headrace.core.time import now_us
from headrace.master.version import (
    DAY,
    FORMAT,
    LANE,
    MASTER,
    MasterFile,
    MasterVersion,
    newest_version,
    transactions_of,
)

# Delta's log is checkpointed every so many commits, so that opening the table reads few files.
CHECKPOINT_COMMITS = 10
# Replaced files are kept so long for readers of an older version: data files, and files of the
# Delta log, of which there would be half a million in a month.
KEPT_HOURS = 1
_CONFIGURATION = {
    "delta.checkpointInterval": str(CHECKPOINT_COMMITS),
    "delta.logRetentionDuration": f"interval {KEPT_HOURS} hours",
    "delta.deletedFileRetentionDuration": f"interval {KEPT_HOURS} hours",
    FORMAT: str(MASTER.newest),
}
_INDEXED = "delta.dataSkippingStatsColumns"
_LAST_CHECKPOINT = "_last_checkpoint"
_PARTITION_BY = [STATUS, DAY, LANE]
_HIDDEN = [
    (PARTITION, pa.int32()),
    (OFFSET, pa.int64()),
    (ARRIVED_AT, pa.timestamp("us", "UTC")),
    (LATE, pa.bool_()),
    (LATENESS, pa.int64()),
    (REASON, pa.string()),
    (RAW, pa.binary()),
]


def file_schema(declared: pa.Schema) -> pa.Schema:
    """The columns of each file: the declared ones, nullable, and the hidden ones."""
    fields = [pa.field(field.name, field.type, nullable=True) for field in declared]
    return pa.schema(fields + [pa.field(name, type) for name, type in _HIDDEN])


def indexed_columns(schema: pa.Schema) -> str:
    """The columns of which Delta keeps statistics: only the offsets are needed, and by default
    Delta keeps those of the first columns only. Structs are included because delta-rs cannot read
    the statistics of a table with a struct that has none.
    """
    structs = [field.name for field in schema if pa.types.is_struct(field.type)]
    return ",".join([OFFSET, *structs])


def declared_fields(table: pa.Schema) -> pa.Schema:
    """The declared columns of a table."""
    own = {*_PARTITION_BY, *(name for name, _ in _HIDDEN)}
    return pa.schema([field for field in table if field.name not in own])


def added_fields(table: pa.Schema) -> list[str]:
    """The declared columns that were added to a table later, in that order: Delta appends them
    after the hidden ones.
    """
    first = table.names.index(PARTITION)
    return [name for name in declared_fields(table).names if table.names.index(name) > first]


class MasterTable:
    """The master dataset of one stream."""

    def __init__(self, path: Path, declared: pa.Schema, partitions: int) -> None:
        self.path, self.partitions = path, partitions
        self.schema = file_schema(declared)
        self._log, self._synced = path / "_delta_log", -1
        self._last: MasterVersion | None = None
        partition_columns = pa.schema([pa.field(name, pa.string()) for name in _PARTITION_BY])
        self._table_schema = pa.unify_schemas([self.schema, partition_columns])

    def newest_or_none(self) -> MasterVersion | None:
        """The newest version, for readers; None if there is no table yet."""
        version = self._last
        if version is None or not version.is_newest():
            version = self._last = newest_version(self.path, self.partitions)
        return version

    def newest(self) -> MasterVersion:
        """The newest version. The table is created if there is none, migrated if its format is
        older, and gets new declared columns.
        """
        from deltalake import Schema

        version = self.newest_or_none() or self._create()
        if version.format < MASTER.newest:
            version = self._migrate(version)
        added = [field for field in self._table_schema if field.name not in version.columns]
        if not added:
            return version
        if any(pa.types.is_struct(field.type) for field in added):
            # Before the column is added: without it the offsets of files could not be read.
            version.delta.alter.set_table_properties({_INDEXED: indexed_columns(self.schema)})
        version.delta.alter.add_columns(
            list(Schema.from_arrow(pa.schema(added)).fields), post_commithook_properties=_no_hooks()
        )
        return self._committed()

    def _migrate(self, version: MasterVersion) -> MasterVersion:
        """The newest version differs from those before it in its property and the checksum, which
        are written in one commit.
        """
        version.delta.alter.set_table_properties(
            {FORMAT: str(MASTER.newest)},
            raise_if_not_exists=False,  # Delta does not know the property
            commit_properties=_with_transactions(version.position, version.highs),
            post_commithook_properties=_no_hooks(),
        )
        migrated = self._committed()
        MASTER.log_migration(version.format, self.path)
        return migrated

    def durable(self) -> MasterVersion:
        """The newest version after a sync: its events may be removed elsewhere."""
        version = self.newest()
        if (number := version.delta.version()) > self._synced:
            for commit in self._log.glob("*.json"):
                if int(commit.stem) > self._synced:
                    sync(commit)
            sync(self._log)
            sync(self.path)
            self._synced = number
        return version

    def _committed(self) -> MasterVersion:
        """The newest version, durable, after a commit; the Delta log is checkpointed if due."""
        version = self.durable()
        if version.delta.version() - self._checkpoint_version() >= CHECKPOINT_COMMITS:
            self._checkpoint(version)
        return version

    def _checkpoint_version(self) -> int:
        """The version of the newest checkpoint; -1 if there is none."""
        try:
            return int(msgspec.json.decode((self._log / _LAST_CHECKPOINT).read_bytes())["version"])
        except FileNotFoundError:
            return -1

    def _checkpoint(self, version: MasterVersion) -> None:
        version.delta.create_checkpoint()
        sync(self._log / f"{version.delta.version():020}.checkpoint.parquet")
        sync(self._log / _LAST_CHECKPOINT)
        sync(self._log)
        version.delta.cleanup_metadata()

    def _create(self) -> MasterVersion:
        from deltalake import DeltaTable, Schema

        make_folder(self.path)
        DeltaTable.create(
            str(self.path),
            Schema.from_arrow(self._table_schema),
            partition_by=_PARTITION_BY,
            name=self.path.name,
            mode="ignore",  # another process may have created it meanwhile
            configuration=_CONFIGURATION | {_INDEXED: indexed_columns(self.schema)},
            post_commithook_properties=_no_hooks(),
            raise_if_key_not_exists=False,  # Delta does not know the property of the format
        )
        return self.newest()

    def append(
        self, range: PositionRange, files: Sequence[MasterFile], highs: Sequence[int | None]
    ) -> None:
        """Commit the files that hold `range`, with the position after it, in one transaction."""
        version = self.newest()
        # Delta accepts any transaction number, even an older one, so the order is checked here.
        if version.position != range.lower:
            raise ValueError(f"expected a range from {version.position}, got {range.lower}")
        failpoint("archive.committing")
        version.delta.create_write_transaction(
            [_add_action(file, data_change=True) for file in files],
            "append",
            self._table_schema,
            partition_by=_PARTITION_BY,
            commit_properties=_with_transactions(range.upper, highs),
            post_commithook_properties=_no_hooks(),
        )
        failpoint("archive.committed")
        self._committed()

    def replace(
        self, version: MasterVersion, old: Sequence[MasterFile], new: Sequence[MasterFile]
    ) -> None:
        """Replace old files of a version by new ones with the same records."""
        from deltalake.transaction import RemoveAction

        now_ms = now_us() // 1_000
        removed = [RemoveAction(version.name_of(file), False, now_ms) for file in old]
        version.delta.create_write_transaction(
            [*removed, *(_add_action(file, data_change=False) for file in new)],
            "append",
            self._table_schema,
            partition_by=_PARTITION_BY,
            post_commithook_properties=_no_hooks(),
        )
        self._committed()

    def vacuum(self) -> None:
        """Remove all files that no version references, also those of a killed process."""
        self.durable().delta.vacuum(
            retention_hours=KEPT_HOURS,
            enforce_retention_duration=False,
            dry_run=False,
            post_commithook_properties=_no_hooks(),
            full=True,
        )
        self._committed()


def event_files(
    files: Iterable[MasterFile], range: PositionRange, status: EventStatus = EventStatus.EVENT
) -> list[MasterFile]:
    """The files that may have events of the range, or records of another status."""
    wanted = dict(range.intervals())
    return [
        file
        for file in files
        if file.status == status.word
        and (interval := wanted.get(file.partition))
        and file.first_offset < interval.upper
        and interval.lower < file.next_offset
    ]


def counts(files: Iterable[MasterFile]) -> dict[str, int]:
    """The number of rows by status."""
    totals = {status.word: 0 for status in EventStatus}
    for file in files:
        totals[file.status] += file.rows
    return totals


def _with_transactions(position: Position, highs: Sequence[int | None]) -> Any:
    from deltalake import CommitProperties, Transaction

    marks = [Transaction(*mark) for mark in transactions_of(position, highs).items()]
    return CommitProperties(app_transactions=marks)


def _no_hooks() -> Any:
    """Without these, Delta would write checkpoints and remove commits before they are durable."""
    from deltalake import PostCommitHookProperties

    return PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


def _add_action(file: MasterFile, data_change: bool) -> Any:
    from deltalake.transaction import AddAction

    place = {STATUS: file.status, DAY: file.day, LANE: str(file.partition)}
    return AddAction(file.path, file.bytes, place, 0, data_change, _statistics(file))


def _statistics(file: MasterFile) -> str:
    return json.dumps(
        {
            "numRecords": file.rows,
            "minValues": {OFFSET: file.first_offset},
            "maxValues": {OFFSET: file.next_offset - 1},
            "nullCount": {},
        }
    )
