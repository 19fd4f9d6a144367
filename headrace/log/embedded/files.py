"""Every change that the log makes on disk goes through `Files`.

So a test can let the n-th of them fail: tests/log/test_io_faults.py does so for each n, and
whatever was acknowledged is readable afterwards. Reading is not here: it changes nothing.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from headrace.core.errors import DiskFull, HeadraceError, Unavailable
from headrace.core.files import sync

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}


class Files:
    """The file system operations of the log; all methods raise OSError."""

    def open(self, path: Path) -> int:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def pwrite(self, fd: int, data: bytes | memoryview, at: int) -> int:
        return os.pwrite(fd, data, at)

    def fdatasync(self, fd: int) -> None:
        os.fdatasync(fd)

    def fsync(self, fd: int) -> None:
        os.fsync(fd)

    def truncate(self, fd: int, length: int) -> None:
        os.ftruncate(fd, length)

    def close(self, fd: int) -> None:
        os.close(fd)

    def replace(self, source: Path, target: Path) -> None:
        os.replace(source, target)

    def unlink(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def fsync_dir(self, path: Path) -> None:
        sync(path)


OS_FILES = Files()


def write_all(files: Files, fd: int, data: bytes, at: int) -> None:
    """Write all of `data` at `at`; a disk may take a part of it, then the rest is offered again."""
    view, done = memoryview(data), 0
    while done < len(data):
        written = files.pwrite(fd, view[done:], at + done)
        if written <= 0:
            raise OSError(errno.EIO, "the disk accepted no bytes of a write")
        done += written


def write_file(files: Files, path: Path, data: bytes) -> None:
    """Make or replace a small file in one step: after a crash it is the old one or the new one."""
    draft = path.with_suffix(".new")
    fd = files.open(draft)
    try:
        files.truncate(fd, 0)
        write_all(files, fd, data, 0)
        files.fsync(fd)
    finally:
        files.close(fd)
    files.replace(draft, path)
    files.fsync_dir(path.parent)


def append_error(error: OSError, path: Path) -> HeadraceError:
    """The error for a producer whose events were not appended."""
    if error.errno in _NO_ROOM:
        return DiskFull(
            f"the disk of the log at {path} is full; nothing was acknowledged",
            detail=str(error),
            hint="free some space; the log resumes by itself.",
        )
    return Unavailable(
        f"the log at {path} cannot be written; nothing was acknowledged",
        detail=str(error),
        hint="check the disk; the log retries with the next event.",
    )
