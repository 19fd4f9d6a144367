"""A deadline that several steps share, whichever of them needs the time.

tests/run/test_alerts.py and tests/run/test_watches.py stop with one.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class Deadline:
    """A deadline that many seconds from now.

    >>> now_s = iter([0.0, 4.0, 9.0, 11.0])
    >>> deadline = Deadline(10.0, lambda: next(now_s))
    >>> deadline.left_s, deadline.passed(), deadline.left_s
    (6.0, False, 0.0)
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends_at = clock() + seconds

    @property
    def left_s(self) -> float:
        """The seconds that are left; 0 after the deadline."""
        return max(0.0, self._ends_at - self._clock())

    def passed(self) -> bool:
        return self.left_s == 0.0
