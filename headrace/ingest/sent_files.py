"""Files that were sent to a stream without an id, where nothing else finds duplicates.

A file is remembered by its content when its last event was acknowledged: as an empty file in the
folder of the log, so that no copy has a log and the files of another time. A crash before that, or
a send that fails midway, leaves it to be sent again. tests/ingest/test_sent_files.py checks it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from headrace.core.address import LogAddress
from headrace.core.files import make_folder, sync

_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class SentFile:
    """The place where a file is remembered."""

    path: Path

    @staticmethod
    def of(log: LogAddress, file: BinaryIO) -> SentFile:
        """The place for an open file, which is read and put back to its beginning."""
        digest = hashlib.sha256()
        while data := file.read(_READ_BYTES):
            digest.update(data)
        file.seek(0)
        return SentFile(log.folder / "sent" / digest.hexdigest())

    @property
    def at_us(self) -> int | None:
        """When it was sent; None if it was not."""
        return self.path.stat().st_mtime_ns // 1000 if self.path.exists() else None

    def remember(self) -> None:
        make_folder(self.path.parent)
        self.path.touch(mode=0o600)
        sync(self.path.parent)


def find_sent(log: LogAddress, file: BinaryIO) -> SentFile | None:
    """The place of a file that was sent before; None, in no time, if no file was."""
    folder = log.folder / "sent"
    if not folder.is_dir() or not any(folder.iterdir()):
        return None
    sent = SentFile.of(log, file)
    return sent if sent.path.exists() else None
