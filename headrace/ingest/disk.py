"""Stops ingest while the disk still has space for the rest of the work.

Free space is checked at most once a second, and nothing is accepted below the limit.
tests/ingest/test_intake.py checks the refusal and the recovery.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from headrace.core.errors import DiskFull
from headrace.core.time import SECOND, Clock

FreeBytes = Callable[[Path], int]


def free_bytes(path: Path) -> int:
    return shutil.disk_usage(path).free


class DiskGuard:
    """Refuses when the disk of `path` has less than `free_bytes_min` left."""

    def __init__(
        self, path: Path, free_bytes_min: int, clock: Clock, *, free: FreeBytes = free_bytes
    ) -> None:
        self._path, self._least, self._clock, self._free = path, free_bytes_min, clock, free
        self._looked_us: int | None = None
        self._left = 0

    def check(self) -> None:
        """Raise DiskFull if there is too little space."""
        now = self._clock()
        # A clock that was set back must not stop the check.
        if self._looked_us is None or abs(now - self._looked_us) >= SECOND:
            self._left, self._looked_us = self._free(self._path), now
        if self._left < self._least:
            raise DiskFull(
                f"the disk has {self._left} bytes left, and ingest stops below {self._least}",
                detail="nothing of this request was accepted.",
                hint="free some space, or lower log.free_bytes_min; ingest then resumes by itself.",
            )
