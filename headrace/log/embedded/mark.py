"""The durable mark of a partition: how far its log is synced, and so how far others may read.

It is rewritten in place after each fdatasync, and synced itself only when a segment is begun. After
the death of the process it is exact; after a power cut it may be older than the data, never newer,
so it is a lower bound, and names the last segment or the one before it, which retention leaves.
tests/log/test_recovery.py opens a log with each kind of mark.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from headrace.core.errors import Unavailable
from headrace.log.embedded.files import Files, write_all

_LAYOUT = struct.Struct("<4sqqqI")  # magic, segment, length, next_offset, crc
_MAGIC = b"HRmk"
_TRIES, _PAUSE_S = 20, 0.002


@dataclass(frozen=True, slots=True)
class DurableMark:
    """The active segment's first offset, its synced bytes, and the offset that comes next."""

    segment: int
    length: int
    next_offset: int

    def encoded(self) -> bytes:
        """
        >>> len(DurableMark(0, 0, 0).encoded())
        32
        """
        data = _LAYOUT.pack(_MAGIC, self.segment, self.length, self.next_offset, 0)[:-4]
        return data + struct.pack("<I", crc32(data))

    @staticmethod
    def decoded(data: bytes) -> DurableMark | None:
        """The mark in these bytes, or None if they are damaged."""
        if len(data) != _LAYOUT.size or data[:4] != _MAGIC:
            return None
        _, segment, length, next_offset, crc = _LAYOUT.unpack(data)
        return DurableMark(segment, length, next_offset) if crc == crc32(data[:-4]) else None


# Where the log of a partition's folder ends.
MarkOf = Callable[[Path], DurableMark]


def mark_path(folder: Path) -> Path:
    return folder / "durable"


def write_mark(files: Files, fd: int, mark: DurableMark) -> None:
    write_all(files, fd, mark.encoded(), 0)


def load_mark(folder: Path) -> DurableMark | None:
    """The mark as it is on disk now; None if it is missing or damaged."""
    try:
        return DurableMark.decoded(mark_path(folder).read_bytes())
    except FileNotFoundError:
        return None


def published_mark(folder: Path) -> DurableMark:
    """The mark as a reader beside a running writer sees it."""
    for _ in range(_TRIES):
        if mark := load_mark(folder):
            return mark
        # The writer may be in the middle of its 32 bytes: read again.
        time.sleep(_PAUSE_S)
    raise Unavailable(
        f"the log at {folder} cannot be read: the file with its durable end is missing or damaged",
        hint="run the project once: it finds the end again from the records of the log.",
        origin=str(mark_path(folder)),
    )
