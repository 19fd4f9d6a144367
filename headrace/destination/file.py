"""FILE 'path': one JSON object a line, appended and synced, in the project's output folder.

A line ends the file only if it is whole: what a kill has left of a torn line is cut off when the
file is opened, which it is again after each failure. The last line of a sink's file says which
panes are there, so that exactly once continues after it; such a file has no other writer.
tests/destination/test_file.py checks each.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import msgspec

from headrace.core.errors import Unavailable
from headrace.core.files import sync
from headrace.define.definitions import Sender
from headrace.define.paths import output_file
from headrace.destination.protocol import (
    AnyDestination,
    DestinationContext,
    DestinationWriter,
    Message,
)

if TYPE_CHECKING:
    from headrace.define.project import Project

_BLOCK = 1 << 16


class FileDestination(AnyDestination, frozen=True):
    word = "FILE"
    usage = "FILE 'path'"
    accepts_panes = True

    def check(self, project: Project, sender: Sender) -> None:
        output_file(project, self.target, sender.said, sender.origin)

    def place(self, project: Project) -> Path:
        return (project.output / self.target).resolve()

    def connect(self, context: DestinationContext) -> DestinationWriter:
        path = output_file(context.project, self.target, self.name)
        return LinesWriter(path, synced=context.durable)


class LinesWriter(DestinationWriter):
    batch_max = 1_000

    def __init__(self, path: Path, *, synced: bool = True) -> None:
        self.path, self.synced = path, synced
        self._whole = False  # whether the file is known to end with a whole line

    def deliver(self, messages: Sequence[Message]) -> None:
        if not self._whole:
            self._mend()
        self._whole = False
        with self._open("ab") as file:
            file.write(b"".join(message.body + b"\n" for message in messages))
            file.flush()
            if self.synced:
                os.fsync(file.fileno())
        self._whole = True

    def newest(self) -> int:
        self._mend()
        with self._open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            if end == 0:
                return 0
            start = _line_start(file, end - 1)
            file.seek(start)
            line = file.read(end - start)
        try:
            return int(msgspec.json.decode(line)["sequence"])
        except (msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
            raise Unavailable(
                f"the last line of {self.path.name} is not a pane, so it is not known how far "
                "the sink has come",
                hint="move the file away, or give the sink another one.",
            ) from error

    def _mend(self) -> None:
        """Make the file if it is missing, and cut off a line that was not finished."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._open("ab"):
            pass
        sync(self.path.parent)
        with self._open("r+b") as file:
            end = file.seek(0, os.SEEK_END)
            whole = _line_start(file, end)
            if whole != end:
                file.truncate(whole)
                os.fsync(file.fileno())
        self._whole = True

    def _open(self, mode: str) -> BinaryIO:
        # The path was resolved: a link that stands there now was put there since.
        return cast(BinaryIO, open(self.path, mode, opener=_unlinked))


def _unlinked(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o644)


def _line_start(file: BinaryIO, end: int) -> int:
    """Where the line begins that ends at `end`; `end` itself if a line begins there."""
    while end > 0:
        start = max(0, end - _BLOCK)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
