"""How far each file was read, kept over restarts.

A mark is saved after its records were acknowledged, as a whole new file that replaces the old one.
A crash in between reads those records again: at least once, and once where the stream declares an
id. The names of the user's files are text in here and never a path in the state folder.
tests/ingest/test_files.py checks a restart at every save.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote
from zlib import crc32

import msgspec

from headrace.core.errors import BadProject

_LOOK_BYTES = 1024
_MARKS_MAX = 10_000


class Mark(msgspec.Struct, frozen=True):
    """Which file it was, and the byte up to which it is taken."""

    device: int
    inode: int
    size: int
    changed_ns: int
    taken: int = 0
    crc: int = 0  # of its beginning and of its last bytes that were taken
    ended: bool = False  # all that this size had was taken

    @staticmethod
    def of(stat: os.stat_result) -> Mark:
        return Mark(stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)

    def unchanged(self, other: Mark) -> bool:
        return self._look() == other._look()

    def continues(self, now: Mark, file: BinaryIO) -> bool:
        """Whether the open file, which looks like `now`, is this one with more at its end."""
        same = (self.device, self.inode) == (now.device, now.inode)
        return same and self.taken <= now.size and self.crc == crc_of(file, self.taken)

    def same_whole(self, now: Mark, file: BinaryIO) -> bool:
        """Whether the open file is this one, and has neither grown nor changed."""
        same = (self.device, self.inode, self.size) == (now.device, now.inode, now.size)
        return same and self.crc == crc_of(file, self.size)

    def _look(self) -> tuple[int, ...]:
        return self.device, self.inode, self.size, self.changed_ns


def crc_of(file: BinaryIO, end: int) -> int:
    """What tells a file from another in its place: its first bytes and those before `end`."""
    size = min(end, _LOOK_BYTES)
    return crc32(os.pread(file.fileno(), size, end - size), crc32(os.pread(file.fileno(), size, 0)))


class Progress:
    """The marks of one stream's files, by their name in the project."""

    def __init__(self, state: Path, stream: str) -> None:
        self._path = state / f"files-{quote(stream, safe='')}.json"
        self._marks = _load(self._path)

    def mark(self, name: str) -> Mark | None:
        return self._marks.get(name)

    def forget_gone(self, present: Collection[str], marks_max: int = _MARKS_MAX) -> None:
        """Forget files that are gone, oldest first, when there are very many marks.

        Not at once: a folder may be away for a while, and its files are not new when it is back.
        """
        gone = [name for name in self._marks if name not in present]
        for name in gone[: max(0, len(self._marks) - marks_max)]:
            del self._marks[name]

    def save(self, name: str, mark: Mark) -> None:
        self._marks.pop(name, None)  # so that the newest is the last
        self._marks[name] = mark
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_suffix(".tmp")
        with fresh.open("wb") as file:
            file.write(msgspec.json.encode(self._marks))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)
        _sync_folder(self._path.parent)


def _sync_folder(folder: Path) -> None:
    """Make a rename durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _load(path: Path) -> dict[str, Mark]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Mark])
    except FileNotFoundError:
        return {}
    except msgspec.DecodeError as error:
        # Beginning again would count every event of these files twice: that is for the user to
        # decide.
        raise BadProject(
            f"the progress of imported files cannot be read: {path}",
            detail=str(error),
            hint="put back a copy, or delete it to read all files again from their beginning.",
        ) from error
