"""How long a build takes, as far as earlier builds of the run tell.

The largest build so far speaks for others: one of fewer events is expected to take no longer, one
of more in proportion. Small builds would say little, because most of their time is spent whatever
they read. tests/run/test_pace.py checks it.
"""

from __future__ import annotations


class Pace:
    """Remembers the largest build of one flow.

    >>> pace = Pace()
    >>> pace.note(1_000, 4.0)
    >>> pace.seconds(500), pace.seconds(3_000)
    (4.0, 12.0)
    """

    def __init__(self) -> None:
        self._largest: tuple[int, float] | None = None

    def note(self, events: int, seconds: float) -> None:
        """A build that has read so many events took so long."""
        # Of two that are equally large the newer one tells more of the machine as it is.
        if events > 0 and (self._largest is None or events >= self._largest[0]):
            self._largest = events, seconds

    def seconds(self, events: int) -> float | None:
        """How long a build of so many events will take; None if no build has told yet."""
        if self._largest is None:
            return None
        most, seconds = self._largest
        return seconds * max(1.0, events / most)
