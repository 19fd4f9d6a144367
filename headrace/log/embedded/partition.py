"""The writer of one partition: one thread, one block a group, one fdatasync for all that wait.

A future is resolved only after its records are synced and the mark says so: written, synced,
marked, acknowledged, in this order. If any of these fails, everything since the last acknowledged
group is cut off and its futures fail; until that has worked, nothing more is written. So everything
below the mark was acknowledged, and a producer that was refused may retry.
tests/log/test_io_faults.py lets each I/O fail, tests/log/test_kill.py kills at each step.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import cast

from headrace.core.errors import Unavailable
from headrace.core.failpoint import failpoint
from headrace.core.meters import LOG_APPEND_SECONDS
from headrace.core.position import Interval
from headrace.core.time import Clock
from headrace.log.block import PackedRecords, block_cuts, encode_block
from headrace.log.embedded.files import Files, append_error, write_all
from headrace.log.embedded.index import IndexWriter
from headrace.log.embedded.mark import DurableMark, mark_path, write_mark
from headrace.log.embedded.recover import recover
from headrace.log.embedded.segment import Segment

GROUP_BYTES_MAX = 8 << 20


@dataclass(frozen=True, slots=True)
class PendingAppend:
    """Records to append, and the caller's future."""

    records: Sequence[bytes] | PackedRecords
    statuses: bytes
    size: int
    future: Future[Interval]


class PartitionWriter:
    """Appends to one partition. `append` may be called from any thread."""

    def __init__(self, folder: Path, segment_bytes_max: int, clock: Clock, files: Files) -> None:
        self.folder = folder
        self._segment_bytes_max, self._clock, self._files = segment_bytes_max, clock, files
        found = recover(folder)
        self._confirmed, self._arrived_at_us = found.mark, found.arrived_at_us
        self._segment_fd: int | None = None
        self._mark_fd: int | None = None
        self._repair()
        self._index = IndexWriter(folder, files)
        self._index.make_sound(self._confirmed)
        self._append_seconds = LOG_APPEND_SECONDS.labels(folder.parent.name)
        self._waiting: deque[PendingAppend] = deque()
        self._closing = False
        self._wake = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=f"log {folder}", daemon=True)
        self._thread.start()

    @property
    def confirmed(self) -> DurableMark:
        """The end of what was acknowledged."""
        return self._confirmed

    def append(self, records: Sequence[bytes], statuses: bytes) -> Future[Interval]:
        return self._enqueue(records, statuses, sum(map(len, records)))

    def append_packed(self, packed: PackedRecords, statuses: bytes) -> Future[Interval]:
        """Append records that are a block of their own."""
        return self._enqueue(packed, statuses, len(packed.body))

    def _enqueue(
        self, records: Sequence[bytes] | PackedRecords, statuses: bytes, size: int
    ) -> Future[Interval]:
        future: Future[Interval] = Future()
        future.set_running_or_notify_cancel()  # from here on it cannot be cancelled
        item = PendingAppend(records, statuses, size, future)
        with self._wake:
            if self._closing:
                raise Unavailable(f"the log at {self.folder} is closed")
            self._waiting.append(item)
            self._wake.notify()
        return future

    def close(self) -> None:
        """Write what waits, then close the files; a second close does nothing."""
        with self._wake:
            if self._closing:  # by now the files may belong to another writer
                return
            self._closing = True
            self._wake.notify()
        self._thread.join()
        if self._segment_fd is None:
            # Refused events that are still in the file would be found there by the next open.
            with contextlib.suppress(OSError):
                self._repair()
        self._release()

    def _run(self) -> None:
        while group := self._take():
            self._serve(group)

    def _take(self) -> list[PendingAppend]:
        """All that waits, up to a bound: a long queue must not need as much memory again."""
        with self._wake:
            self._wake.wait_for(lambda: self._waiting or self._closing)
            group: list[PendingAppend] = []
            size = 0
            while self._waiting and size < GROUP_BYTES_MAX:
                group.append(self._waiting.popleft())
                size += group[-1].size
            return group

    def _serve(self, group: list[PendingAppend]) -> None:
        """Commit a group and resolve the future of each caller."""
        first_offset = self._confirmed.next_offset
        try:
            self._commit(group)
        except Exception as error:
            failure = self._failed(error)
            for item in group:
                item.future.set_exception(failure)
            return
        for item in group:
            interval = Interval(first_offset, first_offset + len(item.records))
            item.future.set_result(interval)
            first_offset = interval.upper

    def _failed(self, error: Exception) -> Exception:
        """Give up what was not acknowledged; a failed repair is tried again with the next group."""
        self._release()
        with contextlib.suppress(Exception):  # whatever it is, callers wait for an answer
            self._repair()
        return append_error(error, self.folder) if isinstance(error, OSError) else error

    def _commit(self, group: list[PendingAppend]) -> None:
        if not (count := sum(len(item.records) for item in group)):
            return
        if self._segment_fd is None:
            self._repair()
        if self._confirmed.length >= self._segment_bytes_max:
            self._roll()
        # Arrival times never decrease, whatever the clock does: replay by time depends on it.
        self._arrived_at_us = max(self._arrived_at_us, self._clock())
        start, offset = self._confirmed.length, self._confirmed.next_offset
        data = b"".join(self._encoded(group))
        mark = DurableMark(self._confirmed.segment, start + len(data), offset + count)
        with self._append_seconds.time():
            self._make_durable(data, mark)
        segment = Segment(self.folder, self._confirmed.segment)
        self._index.note(segment, offset, start, self._arrived_at_us)

    def _encoded(self, group: list[PendingAppend]) -> Iterator[bytes]:
        offset = self._confirmed.next_offset
        for packed, statuses in _blocks(group):
            yield encode_block(offset, self._arrived_at_us, packed, statuses)
            offset += len(packed)

    def _make_durable(self, data: bytes, mark: DurableMark) -> None:
        fd, mark_fd = self._segment_fd, self._mark_fd
        assert fd is not None
        assert mark_fd is not None
        write_all(self._files, fd, data, self._confirmed.length)
        failpoint("log.written")
        self._files.fdatasync(fd)
        failpoint("log.synced")
        write_mark(self._files, mark_fd, mark)
        failpoint("log.marked")
        self._confirmed = mark

    def _repair(self) -> None:
        """Open the files again and cut off all that was not acknowledged."""
        self._release()
        try:
            self._reopen(self._confirmed)
        except OSError:
            self._release()  # a partition without open files is one that has still to be repaired
            raise

    def _reopen(self, mark: DurableMark) -> None:
        self._mark_fd = self._files.open(mark_path(self.folder))
        self._segment_fd = self._files.open(Segment(self.folder, mark.segment).path)
        # The mark comes after the segment's name and before the cut: it must never name a missing
        # file, nor bytes that are already cut off.
        self._files.fsync_dir(self.folder)
        write_mark(self._files, self._mark_fd, mark)
        # Once a segment: a mark that a power cut brings back must not name one that is removed.
        self._files.fsync(self._mark_fd)
        self._files.truncate(self._segment_fd, mark.length)
        self._files.fsync(self._segment_fd)

    def _roll(self) -> None:
        """Seal the active segment and begin the next."""
        assert self._segment_fd is not None
        self._files.fsync(self._segment_fd)
        before, offset = self._confirmed, self._confirmed.next_offset
        self._confirmed = DurableMark(offset, 0, offset)
        try:
            self._repair()
        except OSError:
            self._confirmed = before
            raise

    def _release(self) -> None:
        for fd in (self._segment_fd, self._mark_fd):
            if fd is not None:
                with contextlib.suppress(OSError):
                    self._files.close(fd)
        self._segment_fd = self._mark_fd = None


def _blocks(group: Sequence[PendingAppend]) -> Iterator[tuple[PackedRecords, bytes]]:
    """The records of a group by blocks: packed ones keep theirs, the others between them share."""
    for packed, some in groupby(group, lambda item: isinstance(item.records, PackedRecords)):
        items = list(some)
        if packed:
            yield from ((cast(PackedRecords, item.records), item.statuses) for item in items)
            continue
        records = [record for item in items for record in cast(Sequence[bytes], item.records)]
        statuses = b"".join(item.statuses for item in items)
        for a, b in block_cuts(records):
            yield PackedRecords.of(records[a:b]), statuses[a:b]
