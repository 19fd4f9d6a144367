"""Persistent cursors: how far each file was read.

A cursor is saved after its records were acknowledged, as a whole new file that replaces the old
one. A crash in between reads those records again: at least once, and once where the stream declares
an id. They are kept in the folder of the log, so that no copy has a log and the cursors of another
time, and have the end of the log when they were saved, which a log that was copied before does not
reach. A backup of log and cursors holds `step` off, so that the two agree. A file is known by its
bytes up to the cursor, whatever its inode: it may come back from a backup, or be written again by a
program that replaces files. Under another name it is the same one if it has the same inode or the
same time of change too, as a renamed one has; two files may have equal contents. The names of the
user's files are text in here and never a path in the state folder. tests/ingest/test_files.py
checks a restart at every save.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, TypeVar
from urllib.parse import quote
from zlib import crc32

import msgspec

from headrace.core.errors import BadProject, Unavailable
from headrace.core.files import copy_file, sync
from headrace.core.format_version import FormatVersions
from headrace.core.position import Position

# Version 0 was a file for each stream in a folder of its own: a dictionary of cursors.
CURSORS = FormatVersions("file cursors", oldest=1, newest=1)
_PROBE_BYTES, _READ_BYTES = 1024, 1 << 20
_PAUSE_S = 0.005
_CURSORS_MAX = 10_000
Read = TypeVar("Read")


class FileCursor(msgspec.Struct, frozen=True):
    """The identity of a file, and the byte up to which it was read."""

    device: int
    inode: int
    size: int
    changed_ns: int
    taken: int = 0
    crc: int = 0  # of its beginning and of its last bytes that were taken
    content: int = 0  # the crc of all bytes that were taken; of a packed file, of all that it has
    ended: bool = False  # all that this size had was taken
    again: int = 0  # how often an import has begun it again, so that cursors of two readings differ

    @staticmethod
    def of(stat: os.stat_result) -> FileCursor:
        return FileCursor(stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)

    def unchanged(self, other: FileCursor) -> bool:
        return self._stat() == other._stat()

    def continues(self, now: FileCursor, file: BinaryIO, packed: bool) -> bool:
        """Whether the open file, whose stat is `now`, is this one with more at its end; a packed
        one must not have grown, because its bytes are counted unpacked.
        """
        end = self.size if packed else self.taken
        if end > now.size or (packed and end < now.size) or self.crc != crc_of(file, end):
            return False
        return self._inode() == now._inode() or self.content == content_of(file, 0, end)

    def renamed(self, now: FileCursor) -> bool:
        """Whether a file of another name may be this one."""
        return self._inode() == now._inode() or self.changed_ns == now.changed_ns

    def at(self, now: FileCursor) -> FileCursor:
        """The cursor at the same byte of the file as it is now."""
        taken, crc, content = self.taken, self.crc, self.content
        replace = msgspec.structs.replace
        return replace(now, taken=taken, crc=crc, content=content, again=self.again)

    def moved(self, file: BinaryIO, taken: int, packed: bool) -> FileCursor:
        """The cursor after more was taken."""
        if packed:
            content = self.content or content_of(file, 0, self.size)
            crc = self.crc or crc_of(file, self.size)
        else:
            content = content_of(file, self.taken, taken, self.content)
            crc = crc_of(file, taken)
        return msgspec.structs.replace(self, taken=taken, crc=crc, content=content)

    def _inode(self) -> tuple[int, int]:
        return self.device, self.inode

    def _stat(self) -> tuple[int, ...]:
        return self.device, self.inode, self.size, self.changed_ns


def crc_of(file: BinaryIO, end: int) -> int:
    """A checksum that identifies a file: of its first bytes and those before `end`."""
    size = min(end, _PROBE_BYTES)
    return crc32(os.pread(file.fileno(), size, end - size), crc32(os.pread(file.fileno(), size, 0)))


def content_of(file: BinaryIO, start: int, end: int, crc: int = 0) -> int:
    """The crc of the bytes before `end`, of which `crc` is that of those before `start`."""
    while start < end and (data := os.pread(file.fileno(), min(_READ_BYTES, end - start), start)):
        crc, start = crc32(data, crc), start + len(data)
    return crc


class _Version(msgspec.Struct, frozen=True):
    version: int = CURSORS.newest


class SavedCursors(msgspec.Struct, frozen=True):
    """The file of cursors; `{}` has none, so that all files are imported again."""

    version: int = CURSORS.newest
    end: str | None = None  # of the log: it has the records before the cursors
    files: dict[str, FileCursor] = {}


class FileCursors:
    """The cursors of one stream's files, by their name in the project, or their path outside it;
    `end` gives that of its log. A connector and imports share them.
    """

    def __init__(self, log: Path, end: Callable[[], Position]) -> None:
        self._log, self._end = log, end
        saved = read_cursors(log)
        self._cursors = dict(saved.files)
        self._saved_end = Position.parse(saved.end) if saved.end else None
        self._saving = threading.Lock()

    def cursor(self, name: str) -> FileCursor | None:
        return self._cursors.get(name)

    def cursors(self) -> Mapping[str, FileCursor]:
        """The cursors as they are now."""
        return dict(self._cursors)

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """Held while records are sent and their cursor is saved."""
        with _locked(self._log, fcntl.LOCK_SH):
            yield

    def forget_gone(self, present: Collection[str], cursors_max: int = _CURSORS_MAX) -> None:
        """Forget files that are gone, oldest first, when there are very many cursors.

        Not at once: a folder may be away for a while, and its files are not new when it is back.
        """
        with self._saving:
            gone = [name for name in self._cursors if name not in present]
            for name in gone[: max(0, len(self._cursors) - cursors_max)]:
                del self._cursors[name]

    def save(self, moved: Mapping[str, FileCursor]) -> None:
        """Save where these files are read now, and the end of the log."""
        with self._saving:
            for name, cursor in moved.items():
                self._cursors.pop(name, None)  # so that the newest is the last
                self._cursors[name] = cursor
            end = self._end()
            _write(self._log, SavedCursors(end=str(end), files=self._cursors))
            self._saved_end = end

    def save_end(self) -> None:
        """Save the end of the log, if it is another than when they were saved."""
        if self._saved_end != self._end():
            self.save({})

    @property
    def saved_end(self) -> Position:
        """The end of the log when they were saved; its beginning if they never were."""
        return self._saved_end or Position.start(len(self._end().offsets))


def known_cursor(
    cursors: Mapping[str, FileCursor], name: str, now: FileCursor, file: BinaryIO, packed: bool
) -> FileCursor | None:
    """The cursor up to which this file was taken, under this name or under another."""
    cursor = cursors.get(name)
    if cursor and cursor.continues(now, file, packed):
        return cursor
    others = (other for other in cursors.values() if other.taken and other.renamed(now))
    same = [other for other in others if other.continues(now, file, packed)]
    return max(same, key=lambda other: other.taken, default=None)


def copied_cursor(
    cursors: Mapping[str, FileCursor], now: FileCursor, file: BinaryIO
) -> FileCursor | None:
    """The cursor of a file with the same bytes that was taken to its end."""
    sized = (other for other in cursors.values() if other.ended and other.size == now.size)
    probed = [other for other in sized if other.taken and other.crc == crc_of(file, now.size)]
    content = content_of(file, 0, now.size) if probed else 0
    return next((other for other in probed if other.content == content), None)


def cursors_path(log: Path) -> Path:
    return log / "files.json"


def former_path(folder: Path, stream: str) -> Path:
    """Where version 0 of the cursors of a stream is."""
    return folder / f"files-{quote(stream, safe='')}.json"


def open_cursors(log: Path, former: Path, end: Position) -> None:
    """Create empty cursors for a stream whose log is empty: if their file is missing later, it was
    lost. Version 0 is migrated.
    """
    if not cursors_path(log).exists():
        if former.exists():
            files = _decoded(former, dict[str, FileCursor])
            _write(log, SavedCursors(end=str(end), files=files))
            CURSORS.log_migration(0, former)
        elif not sum(end.offsets):
            _write(log, SavedCursors())
    former.unlink(missing_ok=True)


def copy_cursors(log: Path, target: Path) -> None:
    """Copy the cursors beside one log beside another."""
    if (path := cursors_path(log)).exists():
        copy_file(path, cursors_path(target))


@contextlib.contextmanager
def pause_imports(log: Path, patience_s: float) -> Iterator[None]:
    """A lock under which no process imports files into a log; hold it briefly."""
    deadline = time.monotonic() + patience_s
    while True:
        with contextlib.suppress(BlockingIOError), _locked(log, fcntl.LOCK_EX | fcntl.LOCK_NB):
            yield
            return
        if time.monotonic() >= deadline:
            raise Unavailable(
                f"the import of files did not pause within {patience_s:.0f} seconds",
                hint="check whether the disk is full, and try again.",
            )
        time.sleep(_PAUSE_S)


@contextlib.contextmanager
def _locked(folder: Path, how: int) -> Iterator[None]:
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, how)
        yield
    finally:
        os.close(handle)


def _write(log: Path, cursors: SavedCursors) -> None:
    path = cursors_path(log)
    fresh = path.with_suffix(".tmp")
    with fresh.open("wb") as file:
        file.write(msgspec.json.encode(cursors))
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync(path.parent)


def read_cursors(log: Path) -> SavedCursors:
    """The saved cursors of a stream; none if it has no file of them."""
    path = cursors_path(log)
    if not path.exists():
        return SavedCursors()
    CURSORS.check(_decoded(path, _Version).version, path)
    return _decoded(path, SavedCursors)


def _decoded(path: Path, of: type[Read]) -> Read:
    try:
        return msgspec.json.decode(path.read_bytes(), type=of)
    except msgspec.DecodeError as error:
        # Beginning again would count every event of these files twice: that is for the user to
        # decide.
        raise BadProject(
            f"the progress of imported files cannot be read: {path}",
            detail=str(error),
            hint="restore a copy; to read all files again from their beginning, write {} into it.",
        ) from error
