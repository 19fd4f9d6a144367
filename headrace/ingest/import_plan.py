"""What an import has to read: files from where they were taken before, cut into tasks.

A file that was taken to its end is not taken again, whatever its name is now, and one that has
grown is continued. A file that `headrace send` has sent as a whole counts as taken too. Lines are
cut where one ends, about every 8 MiB, and small files share a task.
tests/ingest/test_import_plan.py checks what is recognised.
"""

from __future__ import annotations

import filecmp
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec

from headrace.core.address import LogAddress
from headrace.ingest.file_cursors import FileCursor, copied_cursor, known_cursor, read_cursors
from headrace.ingest.lines import Lines
from headrace.ingest.packing import FileRange, PackTask
from headrace.ingest.records import Kind
from headrace.ingest.sent_files import find_sent

_SCAN_BYTES = 64 << 10
_FIRST_BYTES_MAX = 1 << 20  # of the first line, to know whether it begins an array


@dataclass(frozen=True, slots=True)
class ImportFile:
    """A file to import; `name` is that of its cursor."""

    name: str
    path: Path
    kind: Kind


@dataclass(frozen=True, slots=True)
class FilePlan:
    """A file and the cursor from which it is read; None if there is nothing to read."""

    file: ImportFile
    before: FileCursor | None
    start: FileCursor | None

    @property
    def bytes(self) -> int:
        packed = self.file.path.name.endswith(".gz")
        return self.start.size - (0 if packed else self.start.taken) if self.start else 0


def plan_files(
    files: Iterable[ImportFile], log: LogAddress, *, again: bool = False
) -> list[FilePlan]:
    """The plans of these files; of two with the same bytes the later one has nothing to read."""
    cursors, plans = read_cursors(log.folder).files, list[FilePlan]()
    sized: dict[int, list[Path]] = {}
    for file in files:
        plan = plan_file(file, cursors, log, again=again)
        if plan.start and not again:
            same = sized.setdefault(plan.start.size, [])
            if any(filecmp.cmp(file.path, path, shallow=False) for path in same):
                plan = FilePlan(file, plan.before, None)
            same.append(file.path)
        plans.append(plan)
    return plans


def plan_file(
    file: ImportFile, cursors: Mapping[str, FileCursor], log: LogAddress, *, again: bool
) -> FilePlan:
    """From where a file is read; from its beginning with `again`."""
    before, packed = cursors.get(file.name), file.path.name.endswith(".gz")
    with file.path.open("rb") as opened:
        now = FileCursor.of(os.fstat(opened.fileno()))
        if again:
            times = 1 + before.again if before else 0
            return FilePlan(file, before, msgspec.structs.replace(now, again=times))
        if known := known_cursor(cursors, file.name, now, opened, packed):
            if known.ended and known.size == now.size:
                return FilePlan(file, before, None)
            return FilePlan(file, before, known.at(now))
        if copied_cursor(cursors, now, opened) or find_sent(log, opened):
            return FilePlan(file, before, None)
        return FilePlan(file, before, now)


def tasks_of(plans: Iterable[FilePlan], part_bytes: int) -> Iterator[PackTask]:
    """The tasks of an import, in the order of its files."""
    waiting: list[FileRange] = []
    for piece in (piece for plan in plans for piece in _ranges(plan, part_bytes)):
        if waiting and (piece.end is None or _size([*waiting, piece]) > part_bytes):
            yield tuple(waiting)
            waiting = []
        waiting.append(piece)
        if piece.end is None or piece.end.taken < piece.start.size:
            yield tuple(waiting)
            waiting = []
    if waiting:
        yield tuple(waiting)


def _size(pieces: Sequence[FileRange]) -> int:
    return sum(piece.bytes for piece in pieces)


def _ranges(plan: FilePlan, part_bytes: int) -> Iterator[FileRange]:
    if plan.start is None:
        return
    file, before, start = plan.file, plan.before, plan.start
    with file.path.open("rb") as opened:
        if _from_its_beginning_only(file, start, opened):
            yield FileRange(file.name, file.path, file.kind, before, start, None)
            return
        ended = False
        while not ended:
            at = _line_end(opened.fileno(), start.taken + part_bytes, start.size)
            ended = at == start.size
            end = msgspec.structs.replace(start.moved(opened, at, False), ended=ended)
            yield FileRange(file.name, file.path, file.kind, before, start, end)
            before = start = end


def _from_its_beginning_only(file: ImportFile, start: FileCursor, opened: BinaryIO) -> bool:
    if file.kind == "csv" or file.path.name.endswith(".gz"):
        return True
    first = Lines(opened, line_bytes_max=_FIRST_BYTES_MAX).first() if not start.taken else b""
    return first.lstrip().startswith(b"[")


def _line_end(fd: int, at: int, size: int) -> int:
    """The end of the line that has byte `at - 1`, or that of the file."""
    at -= 1
    while at < size and (data := os.pread(fd, min(_SCAN_BYTES, size - at), at)):
        if (found := data.find(b"\n")) >= 0:
            return at + found + 1
        at += len(data)
    return size
