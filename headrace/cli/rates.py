"""The rate of each stream, from samples of its log's end.

A rate is an average over the newest seconds, so that one epoch or burst does not dominate it; it
needs two samples. tests/cli/test_top.py checks it with a controlled clock.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from itertools import pairwise

from headrace.api.resources.status import StreamStatus

OVER_S = 5.0
_KEPT = 240  # samples, for the curve
_BARS = "▁▂▃▄▅▆▇█"


class Rates:
    """The samples of each stream: (seconds, events)."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._samples: dict[str, deque[tuple[float, int]]] = defaultdict(
            lambda: deque(maxlen=_KEPT)
        )

    def sample(self, streams: Iterable[StreamStatus]) -> None:
        now = self._clock()
        for stream in streams:
            self._samples[stream.name].append((now, sum(stream.end)))

    def rate(self, stream: str) -> float | None:
        """Events a second over the newest seconds."""
        seen = self._samples[stream]
        newest = [look for look in seen if look[0] >= seen[-1][0] - OVER_S]
        if len(newest) < 2:
            return None
        return (newest[-1][1] - newest[0][1]) / max(newest[-1][0] - newest[0][0], 1e-9)

    def curve(self, stream: str, width: int) -> str:
        """The newest rates as bars, the highest of them as the tallest.

        >>> rates = Rates(iter([0.0, 1.0, 2.0, 3.0]).__next__)
        >>> for end in (0, 7, 7, 8): rates._samples["s"].append((rates._clock(), end))
        >>> rates.curve("s", 3)
        '█▁▂'
        """
        seen = list(self._samples[stream])[-width - 1 :]
        steps = [(b[1] - a[1]) / max(b[0] - a[0], 1e-9) for a, b in pairwise(seen)]
        top = max(steps, default=0.0) or 1.0
        return "".join(_BARS[round(step / top * (len(_BARS) - 1))] for step in steps)
