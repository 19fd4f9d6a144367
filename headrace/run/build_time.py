"""Estimates how long a build takes, from earlier builds of this process.

The estimate is based on the largest build: a build of fewer events is expected to take as long, one
of more events proportionally longer. Small builds are not used, because most of their time does not
depend on the number of events. tests/run/test_build_time.py checks it.
"""

from __future__ import annotations


class BuildTimeEstimate:
    """The largest build of one flow.

    >>> build_time = BuildTimeEstimate()
    >>> build_time.add(1_000, 4.0)
    >>> build_time.seconds(500), build_time.seconds(3_000)
    (4.0, 12.0)
    """

    def __init__(self) -> None:
        self._largest: tuple[int, float] | None = None

    def add(self, events: int, seconds: float) -> None:
        """Record a build of this many events."""
        # Of two builds of the same size the newer one is used.
        if events > 0 and (self._largest is None or events >= self._largest[0]):
            self._largest = events, seconds

    def seconds(self, events: int) -> float | None:
        """The expected seconds of a build of this many events; None before the first build."""
        if self._largest is None:
            return None
        most, seconds = self._largest
        return seconds * max(1.0, events / most)
