"""A file system whose n-th change fails, in one of the ways that disks have."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headrace.log.embedded.files import Files


class FaultyFiles(Files):
    """Counts changes; those numbered in `fails` go wrong by `fault`. Closing a file always works.

    The faults: "eio" and "enospc" change nothing; "short" writes a part and then has no room;
    "late" does the work and then says that it failed, as an fsync may.
    """

    def __init__(self, fault: str, fails: Callable[[int], bool]) -> None:
        self.fault, self.fails, self.count = fault, fails, 0

    def _apply(self, work: Callable[[], Any]) -> Any:
        self.count += 1
        if not self.fails(self.count):
            return work()
        if self.fault == "late":
            work()
        code = errno.ENOSPC if self.fault in ("enospc", "short") else errno.EIO
        raise OSError(code, os.strerror(code))

    def open(self, path: Path) -> int:
        if self.fault == "late":  # the caller could never close what it was not given
            return super().open(path)
        return self._apply(lambda: Files.open(self, path))

    def pwrite(self, fd: int, data: bytes | memoryview, at: int) -> int:
        if self.fault == "late":  # a write that failed is one whose bytes are not asked for
            return super().pwrite(fd, data, at)
        if self.fault == "short" and self.fails(self.count + 1) and len(data) > 1:
            os.pwrite(fd, bytes(data)[: len(data) // 2], at)
        return self._apply(lambda: Files.pwrite(self, fd, data, at))

    def fdatasync(self, fd: int) -> None:
        self._apply(lambda: Files.fdatasync(self, fd))

    def fsync(self, fd: int) -> None:
        self._apply(lambda: Files.fsync(self, fd))

    def truncate(self, fd: int, length: int) -> None:
        self._apply(lambda: Files.truncate(self, fd, length))

    def replace(self, source: Path, target: Path) -> None:
        self._apply(lambda: Files.replace(self, source, target))

    def unlink(self, path: Path) -> None:
        self._apply(lambda: Files.unlink(self, path))

    def fsync_dir(self, path: Path) -> None:
        self._apply(lambda: Files.fsync_dir(self, path))


class HalvingFiles(Files):
    """A disk that takes at most half of each write, without an error."""

    def pwrite(self, fd: int, data: bytes | memoryview, at: int) -> int:
        return super().pwrite(fd, data[: max(1, len(data) // 2)], at)


class NotingFiles(Files):
    """Notes each write and sync, with the name of its file."""

    def __init__(self) -> None:
        self.done: list[tuple[str, str]] = []

    def _note(self, what: str, fd: int) -> None:
        self.done.append((what, Path(f"/proc/self/fd/{fd}").readlink().name))

    def pwrite(self, fd: int, data: bytes | memoryview, at: int) -> int:
        self._note("write", fd)
        return super().pwrite(fd, data, at)

    def fdatasync(self, fd: int) -> None:
        self._note("sync", fd)
        super().fdatasync(fd)

    def fsync(self, fd: int) -> None:
        self._note("sync", fd)
        super().fsync(fd)
