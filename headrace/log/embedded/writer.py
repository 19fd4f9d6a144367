"""The writer of an embedded log: a folder of partitions, written by one process.

An append is acknowledged with the offsets it was given, after they are durable and published.
Offsets of a partition have no gaps and are never given twice. `topic.json` is written last when a
topic is made, so a topic that a crash left half made is simply made again.
tests/log/test_writer.py checks it; other processes read through headrace.log.embedded.reader.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

from headrace.core.address import LogAddress
from headrace.core.errors import AlreadyRunning, BadDefinition
from headrace.core.position import Interval, Position
from headrace.core.time import Clock, now_us
from headrace.log.block import PackedRecords
from headrace.log.embedded.description import LOG, read_description
from headrace.log.embedded.files import OS_FILES, Files, append_error, write_file
from headrace.log.embedded.partition import PartitionWriter
from headrace.log.embedded.recover import last_arrival
from headrace.log.embedded.segment import Segment, list_segments


class EmbeddedWriter:
    """The single writer of a topic.

    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> topic = EmbeddedWriter.open(Path(folder.name) / "clicks", 2, segment_bytes_max=1 << 20)
    >>> topic.append(1, [b'{"user": "ada"}', b'{"user": "bob"}'], bytes(2)).result()
    Interval(lower=0, upper=2)
    >>> topic.end()
    Position(offsets=(0, 2))
    >>> topic.close(); folder.cleanup()
    """

    def __init__(
        self, path: Path, writers: list[PartitionWriter], clock: Clock, files: Files, lock_fd: int
    ) -> None:
        self.path = self.folder = path
        self.address = LogAddress.of_files(path)
        self._writers, self._clock, self._files, self._lock_fd = writers, clock, files, lock_fd
        self._last_arrivals: dict[Segment, int] = {}

    @staticmethod
    def open(
        path: Path,
        partitions: int,
        *,
        segment_bytes_max: int,
        clock: Clock = now_us,
        files: Files = OS_FILES,
    ) -> EmbeddedWriter:
        """Open the topic for writing, and make it if it is not there."""
        _check_partitions(path, partitions)
        writers: list[PartitionWriter] = []
        with ExitStack() as undo:
            try:
                lock_fd = _lock(path, partitions)
                undo.callback(os.close, lock_fd)
                for folder in _folders(path, partitions):
                    writers.append(PartitionWriter(folder, segment_bytes_max, clock, files))
                    undo.callback(writers[-1].close)
                _describe(path, partitions, files)
            except OSError as error:
                raise append_error(error, path) from error
            undo.pop_all()
        return EmbeddedWriter(path, writers, clock, files, lock_fd)

    def append(
        self, partition: int, records: Sequence[bytes], statuses: Sequence[int] | bytes
    ) -> Future[Interval]:
        """Append records, each with its Status; the future gives their offsets once durable.

        It fails with DiskFull or Unavailable; then none of these records is in the log.
        """
        marks = bytes(statuses)
        if len(marks) != len(records):
            raise ValueError(f"{len(records)} records cannot have {len(marks)} statuses")
        return self._writers[partition].append(records, marks)

    def append_packed(
        self, partition: int, packed: PackedRecords, statuses: bytes
    ) -> Future[Interval]:
        """The same for records that become one block, unless there are none."""
        return self._writers[partition].append_packed(packed, statuses)

    def start(self) -> Position:
        """The oldest event that is still here, in each partition."""
        return Position(tuple(list_segments(w.folder)[0].first_offset for w in self._writers))

    def end(self) -> Position:
        """The position after the last acknowledged event."""
        return Position(tuple(writer.confirmed.next_offset for writer in self._writers))

    def retain(self, archived: Position, older_than_us: int) -> int:
        """Delete sealed segments that are archived and whose events are all older than this age.

        Returns the bytes freed. The active segment always stays.
        """
        before_us = self._clock() - older_than_us
        pairs = zip(self._writers, archived.offsets, strict=True)
        try:
            return sum(self._retain(writer, offset, before_us) for writer, offset in pairs)
        except OSError as error:
            raise append_error(error, self.path) from error

    def close(self) -> None:
        """Write what waits and release the files; acknowledged events need no close."""
        for writer in self._writers:
            writer.close()
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
        self._lock_fd = -1

    def _retain(self, writer: PartitionWriter, archived: int, before_us: int) -> int:
        active, freed = writer.confirmed.segment, 0
        segments = [s for s in list_segments(writer.folder) if s.first_offset <= active]
        for segment, after in pairwise(segments):
            # Oldest first, and stop at the first that stays: the log has no holes.
            if after.first_offset > archived or self._last_arrival(segment) >= before_us:
                break
            freed += segment.size
            # The index goes first: a segment without an index is whole, the reverse is litter.
            self._files.unlink(segment.index_path)
            self._files.unlink(segment.path)
            self._last_arrivals.pop(segment, None)
        if freed:
            self._files.fsync_dir(writer.folder)
        return freed

    def _last_arrival(self, segment: Segment) -> int:
        if segment not in self._last_arrivals:
            self._last_arrivals[segment] = last_arrival(segment, segment.size)
        return self._last_arrivals[segment]


def _check_partitions(path: Path, partitions: int) -> None:
    existing = read_description(path)
    if existing is not None and existing != partitions:
        raise BadDefinition(
            f"the log at {path} has {existing} partitions and cannot be opened with {partitions}",
            detail="an event's partition is a part of its position.",
            hint=f"set partitions = {existing}, or create a new stream.",
        )


def _folders(path: Path, partitions: int) -> list[Path]:
    return [path / str(partition) for partition in range(partitions)]


def _lock(path: Path, partitions: int) -> int:
    """Make the folders and become the only writer: opening cuts torn tails off."""
    for folder in _folders(path, partitions):
        folder.mkdir(parents=True, exist_ok=True)
    fd = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(fd)
        raise AlreadyRunning(
            f"another process has the log at {path} open for writing", hint="stop it first."
        ) from error
    return fd


def _describe(path: Path, partitions: int, files: Files) -> None:
    if read_description(path) is None:
        text = json.dumps({"partitions": partitions, "version": LOG.newest})
        write_file(files, path / "topic.json", text.encode())
        files.fsync_dir(path.parent)
