"""Takes the parts of imports into the log of a stream: each once, whole, and in order.

A part is *begun* when its file has that name; from then on it will be in the log. Its blocks are
appended, then the cursors of its files are saved, then it is removed. After a kill in between, the
next process that opens the log finds the part, and which of its blocks the log has already since
the cursors were saved before it: appends the others, and saves. A part whose files were read from
other cursors than the saved ones is refused, so none is taken twice. A backup of log and cursors
waits for the end of a part. tests/ingest/test_import_kill.py kills at each step.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import structlog

from headrace.core.errors import BadRequest, Conflict, Unavailable
from headrace.core.failpoint import failpoint
from headrace.core.files import copy_file, sync
from headrace.core.position import Interval
from headrace.ingest.import_part import ImportPart, read_part
from headrace.ingest.intake import Intake, Receipt
from headrace.log.opening import open_reader

_PART = re.compile(r"[0-9a-z]+(-[0-9a-z]+)*\.part")
_BEGUN = "begun"
_log = structlog.get_logger(__name__)


def import_folder(log: Path) -> Path:
    """Where the parts for a log are staged."""
    return log / "import"


class Importer:
    """The imports of one stream. Not more than one part is taken at a time."""

    def __init__(self, intake: Intake) -> None:
        self._intake, self._folder = intake, import_folder(intake.folder)
        self._turn = threading.Lock()

    def take(self, name: str) -> Receipt:
        """Take a staged part; when this returns, its records are durable and its cursors saved."""
        if not _PART.fullmatch(name):
            raise BadRequest(f"'{name}' is not the name of a part of an import")
        with self._turn, self._intake.file_cursors.step():
            self._finish()
            path = self._folder / name
            part = read_part(path)
            self._check(part)
            self._intake.check_room(part.count)
            self._intake.file_cursors.save_end()  # the end of the log: the part is not before it
            path.replace(self._folder / _BEGUN)
            sync(self._folder)
            failpoint("import.begun")
            return self._complete(part)

    def recover(self) -> None:
        """Take the rest of a part that was begun. Without disk it stays begun."""
        if not (self._folder / _BEGUN).exists():
            return
        try:
            with self._turn, self._intake.file_cursors.step():
                self._finish()
        except Unavailable as error:
            stream = self._intake.definition.name
            _log.warning("import.waiting", stream=stream, reason=error.message)

    def _check(self, part: ImportPart) -> None:
        for name, move in part.files.items():
            if self._intake.file_cursors.cursor(name) != move.before:
                raise Conflict(
                    f"file {name} was taken by another import in the meantime",
                    hint="run the command again: it resumes after what was taken.",
                )

    def _finish(self) -> None:
        begun = self._folder / _BEGUN
        if not begun.exists():
            return
        part, cursors = read_part(begun), self._intake.file_cursors
        if all(cursors.cursor(name) == move.after for name, move in part.files.items()):
            begun.unlink()  # it was taken
        else:
            self._complete(part.without(set(self._appended(part))))

    def _appended(self, part: ImportPart) -> Iterator[int]:
        """The numbers of the blocks that are in the log already."""
        reader, saved = open_reader(self._intake.address), self._intake.file_cursors.saved_end
        logged = Counter[tuple[int, int, int]]()
        for partition in {block.partition for block in part.blocks}:
            first = max(reader.start().offsets[partition], saved.offsets[partition])
            tail = Interval(first, reader.end().offsets[partition])
            for block in reader.blocks(partition, tail):
                if block.imported:
                    logged[(partition, block.count, crc32(block.body))] += 1
        for number, packed in enumerate(part.blocks):
            key = (packed.partition, len(packed.packed), crc32(packed.packed.body))
            if logged[key]:
                logged[key] -= 1
                yield number

    def _complete(self, part: ImportPart) -> Receipt:
        receipt = self._intake.submit_part(part).result()
        failpoint("import.appended")
        self._intake.file_cursors.save({n: move.after for n, move in part.files.items()})
        failpoint("import.saved")
        (self._folder / _BEGUN).unlink()
        return receipt


def copy_begun(log: Path, target: Path) -> None:
    """Copy the part that was begun beside one log beside another; without it a log that has some of
    its blocks would not be completed.
    """
    if (begun := import_folder(log) / _BEGUN).exists():
        copy_file(begun, import_folder(target) / _BEGUN)
