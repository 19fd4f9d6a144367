"""Where the log of a stream is: an address that can be printed, pickled and sent to a task.

    file:/var/lib/shop/log/clicks

Code outside headrace/log identifies a log by its address alone, and opens it with `open_reader` or
`open_writer` (headrace/log/opening.py). tests/log/test_address.py checks the round trip.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FILE = "file"


@dataclass(frozen=True, slots=True)
class LogAddress:
    """The kind of a log, and its location, in the notation of that kind.

    >>> str(LogAddress.of_files(Path("/data/log/clicks")))
    'file:/data/log/clicks'
    >>> LogAddress.parse("file:/data/log/clicks").folder.name
    'clicks'
    """

    kind: str
    place: str

    @staticmethod
    def of_files(folder: Path) -> LogAddress:
        return LogAddress(FILE, str(folder))

    @staticmethod
    def parse(text: str) -> LogAddress:
        kind, _, place = text.partition(":")
        return LogAddress(kind, place)

    @property
    def folder(self) -> Path:
        """The folder of an embedded log."""
        if self.kind != FILE:
            raise ValueError(f"{self} is not the address of a log of files")
        return Path(self.place)

    def __str__(self) -> str:
        return f"{self.kind}:{self.place}"
