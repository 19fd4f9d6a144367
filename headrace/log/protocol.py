"""The interface of a stream's log: a writer, and readers in any process.

Laws that every implementation keeps, and tests/log/test_laws.py checks on each:
  - an append is acknowledged when it is durable, with the offsets that its records were given;
  - offsets of a partition begin at 0, have no gaps and are never given twice (*density*), so that a
    range of positions says how many records it has;
  - a reader sees only what is durable, and never less than it saw before;
  - records leave at the beginning only, and only what is archived; a range that has left is
    NotFound, and damage is CorruptLog, never a gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from headrace.core.address import LogAddress
from headrace.core.position import Interval, Position
from headrace.log.block import Block, PackedRecords


@dataclass(frozen=True, slots=True)
class LogPart:
    """A part of a partition that can be verified by itself: where it is, and what it holds."""

    place: str
    interval: Interval
    bytes: int


class LogReader(Protocol):
    """Reads a log beside its writer; cheap to make, and picklable, to be sent to a task."""

    partitions: int

    def start(self) -> Position:
        """The oldest record that is still here, in each partition."""

    def end(self) -> Position:
        """The position after the last durable record."""

    def blocks(self, partition: int, interval: Interval) -> Iterator[Block]:
        """Exactly the records with these offsets, in order."""

    def parts(self, partition: int) -> list[LogPart]:
        """The parts of the partition."""

    def position_at(self, time_us: int) -> Position:
        """The first record of each partition that arrived at or after this time."""


class LogWriter(Protocol):
    """The single writer of a log."""

    address: LogAddress
    folder: Path  # on this machine, for what is derived from the log

    def append(
        self, partition: int, records: Sequence[bytes], statuses: Sequence[int] | bytes
    ) -> Future[Interval]:
        """Append records, each with its Status; the future gives their offsets once durable.

        It fails with DiskFull or Unavailable; then none of these records is in the log.
        """

    def append_packed(
        self, partition: int, packed: PackedRecords, statuses: bytes
    ) -> Future[Interval]:
        """The same for records that are packed already; they are in no block with others."""

    def start(self) -> Position:
        """The oldest record that is still here, in each partition."""

    def end(self) -> Position:
        """The position after the last acknowledged record."""

    def retain(self, archived: Position, older_than_us: int) -> int:
        """Remove records that are archived and older than this age; the bytes freed."""

    def close(self) -> None:
        """Write what waits; acknowledged records need no close."""
