"""Guards of the intake: nothing is accepted while the disk has too little space for the rest of the
work, or while speed lags more than the limit.

Free space is read at most once a second and the lag ten times; what was accepted since is added to
the lag. tests/ingest/test_intake.py and tests/ingest/test_lag.py check refusals and recovery.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from headrace.core.errors import DiskFull, Overloaded
from headrace.core.time import MILLISECOND, SECOND, Clock

CHECK_US = 100 * MILLISECOND
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


class LagGuard:
    """Refuses while more than `events_max` events wait for speed; without a limit it never does."""

    def __init__(
        self, stream: str, events_max: int | None, lag: Callable[[], int], clock: Clock
    ) -> None:
        self._stream, self._most, self._lag, self._clock = stream, events_max, lag, clock
        self._asked_us: int | None = None
        self._waiting = 0

    def check(self, records: int) -> None:
        """Count these records in, or raise Overloaded if there are too many before them."""
        if self._most is None:
            return
        now = self._clock()
        # A clock that was set back must not stop the check.
        if self._asked_us is None or abs(now - self._asked_us) >= CHECK_US:
            self._waiting, self._asked_us = self._lag(), now
        if self._waiting > self._most:
            raise Overloaded(
                f"the speed layer of stream '{self._stream}' is {self._waiting} events behind, "
                f"and lag_events_max is {self._most}",
                detail="nothing of this request was accepted.",
                hint="retry after the time in Retry-After.",
            )
        self._waiting += records
