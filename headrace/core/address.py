"""Where the log of a stream and the store of a project are: addresses that can be printed, pickled
and sent to a task.

    file:/var/lib/shop/log/clicks

Code outside headrace/log and headrace/serving identifies a log or a store by its address alone, and
opens it by the functions of headrace/log/opening.py and headrace/serving/opening.py.
tests/log/test_address.py checks the round trip, tests/core/test_address.py that no password is
printed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

FILE, POSTGRES = "file", "postgresql"


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


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """A file of SQLite, or a schema of a PostgreSQL database.

    >>> str(StoreAddress.of_postgres("postgresql://ann:secret@db/events", "shop"))
    'schema shop of postgresql://ann@db/events'
    """

    kind: str
    place: str = field(repr=False)  # a URL may have a password
    schema: str = ""

    @staticmethod
    def of_file(path: Path) -> StoreAddress:
        return StoreAddress(FILE, str(path))

    @staticmethod
    def of_postgres(url: str, schema: str) -> StoreAddress:
        return StoreAddress(POSTGRES, url, schema)

    @property
    def path(self) -> Path:
        """The file of a store in SQLite."""
        if self.kind != FILE:
            raise ValueError(f"{self} is not the address of a file")
        return Path(self.place)

    def __str__(self) -> str:
        if self.kind == FILE:
            return self.place
        url = urlsplit(self.place)
        user, _, host = url.netloc.rpartition("@")
        shown = f"{user.partition(':')[0]}@{host}" if user else host
        return f"schema {self.schema} of {POSTGRES}://{shown}{url.path}"
