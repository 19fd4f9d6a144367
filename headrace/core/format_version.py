"""Everything that Headrace stores has the version of its format, which is checked before anything
else is read.

A version is a whole number; 0 is what was written before formats had one. State that a newer
Headrace has written is refused and not changed. tests/samples has a state of each version that is
read, tests/run/test_formats.py opens them.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from headrace.core.errors import UnsupportedFormat
from headrace.core.version import __version__

# Not structlog: a command has no journal, and then Python writes this to standard error.
Place = Path | str  # where it is, in the words of a sentence
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FormatVersions:
    """The versions of one format that this Headrace reads; it writes the newest.

    >>> FormatVersions("log", oldest=1, newest=3).check(2, Path("log/clicks"))
    """

    what: str
    newest: int
    oldest: int = 0

    def check(self, found: int, place: Place) -> None:
        """UnsupportedFormat unless the version that was found at a place can be read."""
        if self.oldest <= found <= self.newest:
            return
        who, hint = (
            ("a newer", "use the Headrace that wrote it, or a newer one.")
            if found > self.newest
            else ("an older", "open it first with a Headrace that was released between the two.")
        )
        raise UnsupportedFormat(
            f"the {self.what} at {place} has format version {found}, but Headrace {__version__} "
            f"supports {self._range()}",
            detail=f"it was written by {who} Headrace; nothing was changed.",
            hint=hint,
        )

    def log_migration(self, found: int, place: Place) -> None:
        """Log that what is at a place was brought from the version that it had to the newest."""
        _log.warning(
            f"migrated the {self.what} at {place} from version {found} of its format to version "
            f"{self.newest}"
        )

    def _range(self) -> str:
        oldest, newest = self.oldest, self.newest
        return f"version {newest}" if oldest == newest else f"versions {oldest} to {newest}"
