"""How far each file was read, kept over restarts.

A mark is saved after its records were acknowledged, as a whole new file that replaces the old one.
A crash in between reads those records again: at least once, and once where the stream declares an
id. Whoever copies log and progress holds `step` off, so that the two agree.
A file is known by its bytes up to the mark, whatever its inode: it may come back from a backup, or
be written anew by a program that replaces files. Under another name it is the same one if it has
the same inode or the same time of change too, as a renamed one has; two files may say the same.
The names of the user's files are text in here and never a path in the state folder.
tests/ingest/test_files.py checks a restart at every save.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote
from zlib import crc32

import msgspec

from headrace.core.errors import BadProject, Unavailable
from headrace.core.files import sync

_LOOK_BYTES, _READ_BYTES = 1024, 1 << 20
_PAUSE_S = 0.005
_MARKS_MAX = 10_000


class Mark(msgspec.Struct, frozen=True):
    """Which file it was, and the byte up to which it is taken."""

    device: int
    inode: int
    size: int
    changed_ns: int
    taken: int = 0
    crc: int = 0  # of its beginning and of its last bytes that were taken
    content: int = 0  # the crc of all bytes that were taken; of a packed file, of all that it has
    ended: bool = False  # all that this size had was taken

    @staticmethod
    def of(stat: os.stat_result) -> Mark:
        return Mark(stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)

    def unchanged(self, other: Mark) -> bool:
        return self._look() == other._look()

    def continues(self, now: Mark, file: BinaryIO, packed: bool) -> bool:
        """Whether the open file, which looks like `now`, is this one with more at its end; a packed
        one must not have grown, because its bytes are counted unpacked.
        """
        end = self.size if packed else self.taken
        if end > now.size or (packed and end < now.size) or self.crc != crc_of(file, end):
            return False
        return self._inode() == now._inode() or self.content == content_of(file, 0, end)

    def renamed(self, now: Mark) -> bool:
        """Whether a file of another name may be this one."""
        return self._inode() == now._inode() or self.changed_ns == now.changed_ns

    def moved(self, file: BinaryIO, taken: int, packed: bool) -> Mark:
        """The mark after more was taken."""
        if packed:
            content = self.content or content_of(file, 0, self.size)
            crc = self.crc or crc_of(file, self.size)
        else:
            content = content_of(file, self.taken, taken, self.content)
            crc = crc_of(file, taken)
        return msgspec.structs.replace(self, taken=taken, crc=crc, content=content)

    def _inode(self) -> tuple[int, int]:
        return self.device, self.inode

    def _look(self) -> tuple[int, ...]:
        return self.device, self.inode, self.size, self.changed_ns


def crc_of(file: BinaryIO, end: int) -> int:
    """What tells a file from another in its place: its first bytes and those before `end`."""
    size = min(end, _LOOK_BYTES)
    return crc32(os.pread(file.fileno(), size, end - size), crc32(os.pread(file.fileno(), size, 0)))


def content_of(file: BinaryIO, start: int, end: int, crc: int = 0) -> int:
    """The crc of the bytes before `end`, of which `crc` is that of those before `start`."""
    while start < end and (data := os.pread(file.fileno(), min(_READ_BYTES, end - start), start)):
        crc, start = crc32(data, crc), start + len(data)
    return crc


class Progress:
    """The marks of one stream's files, by their name in the project."""

    def __init__(self, state: Path, stream: str) -> None:
        self._state, self._path = state, progress_path(state, stream)
        self._marks = _load(self._path)

    def mark(self, name: str) -> Mark | None:
        return self._marks.get(name)

    def marks(self) -> Mapping[str, Mark]:
        """The marks as they are now."""
        return dict(self._marks)

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """Held while records are sent and their mark is saved."""
        self._state.mkdir(parents=True, exist_ok=True)
        with _locked(self._state, fcntl.LOCK_SH):
            yield

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
        _write(self._path, self._marks)


def progress_path(state: Path, stream: str) -> Path:
    return state / f"files-{quote(stream, safe='')}.json"


def begin_progress(state: Path, stream: str) -> None:
    """Note that nothing was read, for a stream whose log is empty: if the file is missing later,
    it was lost.
    """
    if not (path := progress_path(state, stream)).exists():
        _write(path, {})


@contextlib.contextmanager
def held_still(state: Path, patience_s: float) -> Iterator[None]:
    """No file is taken in any process while this is held; what it is held for must be short."""
    state.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + patience_s
    while True:
        with contextlib.suppress(BlockingIOError), _locked(state, fcntl.LOCK_EX | fcntl.LOCK_NB):
            yield
            return
        if time.monotonic() >= deadline:
            raise Unavailable(
                f"files are being imported, and no step of it ended in {patience_s:.0f} seconds",
                hint="is the disk full? try again later.",
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


def _write(path: Path, marks: Mapping[str, Mark]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".tmp")
    with fresh.open("wb") as file:
        file.write(msgspec.json.encode(marks))
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync(path.parent)


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
