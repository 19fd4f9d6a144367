"""Sync, digest and copy of files that must survive a power cut.

tests/core/test_files.py checks the copy.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

_READ_BYTES = 1 << 20


def sync(path: Path) -> None:
    """Make a file's bytes, or a folder's names, durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(path: Path) -> None:
    """Make a folder, and those above it that are missing, whose names are durable."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync(path.parent)


def digest_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def copy_file(source: Path, target: Path, length: int | None = None) -> str:
    """Copy a file, or its first bytes, with its mode, and make the copy durable; the digest of what
    was read.
    """
    digest = hashlib.sha256()
    target.parent.mkdir(parents=True, exist_ok=True)
    with source.open("rb") as given:
        mode, left = os.fstat(given.fileno()), length
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stat.S_IMODE(mode.st_mode))
        with open(handle, "wb") as taken:
            os.fchmod(handle, stat.S_IMODE(mode.st_mode))  # the umask may have taken some of it
            while data := given.read(_READ_BYTES if left is None else min(left, _READ_BYTES)):
                digest.update(data)
                taken.write(data)
                left = None if left is None else left - len(data)
            taken.flush()
            os.fsync(taken.fileno())
            # A later check of the copy must read the disk, not the page cache.
            os.posix_fadvise(taken.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    sync(target.parent)
    return digest.hexdigest()
