"""NOTIFY FILE 'path': one notification a line, appended and synced."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headrace.run.targets import FileTarget
from headrace.serving.notices import Notice


class FileAction:
    """A torn line is cut off when the file is opened, and its notice comes again."""

    at_once = 1_000

    def __init__(self, path: Path) -> None:
        self.path = path
        self._target: FileTarget | None = None

    def deliver(self, notices: Sequence[Notice]) -> None:
        # Opened anew after a failure, which may have torn a line.
        target, self._target = self._target or FileTarget(self.path), None
        target.write([(notice.number, notice.body) for notice in notices])
        self._target = target
