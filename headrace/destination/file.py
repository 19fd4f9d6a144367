"""FILE 'path': one JSON object per line, appended and synced, in the project's output folder.

A partial last line, left by a crash, is truncated when the file is opened, and again after each
failure. The last line of a sink's file has the sequence number of its pane, after which
exactly-once delivery resumes; such a file has no other writer. tests/destination/test_file.py
checks each.
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

    def exclusive_target(self, project: Project) -> Path:
        return (project.output / self.target).resolve()

    def connect(self, context: DestinationContext) -> DestinationWriter:
        path = output_file(context.project, self.target, self.name)
        return LinesWriter(path, synced=context.durable)


class LinesWriter(DestinationWriter):
    batch_max = 1_000

    def __init__(self, path: Path, *, synced: bool = True) -> None:
        self.path, self.synced = path, synced
        self._repaired = False  # whether the file certainly ends with a complete line

    def deliver(self, messages: Sequence[Message]) -> None:
        if not self._repaired:
            self._repair()
        self._repaired = False
        with self._open("ab") as file:
            file.write(b"".join(message.body + b"\n" for message in messages))
            file.flush()
            if self.synced:
                os.fsync(file.fileno())
        self._repaired = True

    def newest(self) -> int:
        self._repair()
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
                f"the last line of {self.path.name} is not a pane, so the position of the sink is "
                "unknown",
                hint="move the file away, or give the sink another one.",
            ) from error

    def _repair(self) -> None:
        """Create the file if it is missing, and truncate an incomplete last line."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._open("ab"):
            pass
        sync(self.path.parent)
        with self._open("r+b") as file:
            end = file.seek(0, os.SEEK_END)
            complete = _line_start(file, end)
            if complete != end:
                file.truncate(complete)
                os.fsync(file.fileno())
        self._repaired = True

    def _open(self, mode: str) -> BinaryIO:
        # The path was resolved before; a symbolic link there now was created since.
        return cast(BinaryIO, open(self.path, mode, opener=_open_no_follow))


def _open_no_follow(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o644)


def _line_start(file: BinaryIO, end: int) -> int:
    """The start of the line that ends at `end`; `end` itself after a newline."""
    while end > 0:
        start = max(0, end - _BLOCK)
        file.seek(start)
        newline = file.read(end - start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0
