"""How late an event is, decided by the log's own order and by nothing else.

The watermark before an event is (highest event time before it in its partition) - delay. An event
dated before that is late, by the distance; any other has a lateness of 0. An event that is dated
more than `ahead` after its arrival comes from a wrong clock: it does not move the highest. The
highest so far is handed from one range of the log to the next, so always
    lateness(a + b, high) == lateness(a, high), lateness(b, high after a).
No clock is read, so batch, speed and audit agree. tests/log/test_lateness.py checks this equation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_NEVER = -(1 << 62)  # before every time, and far enough from the edge to subtract a delay


def lateness(
    times_us: NDArray[np.int64],
    known: NDArray[np.bool_],
    arrived_at_us: NDArray[np.int64],
    high_us: int | None,
    delay_us: int,
    ahead_us: int,
) -> tuple[NDArray[np.int64], int | None]:
    """The lateness of each event, and the highest event time after them; `known` have a time.

    >>> times = np.array([50, 10, 60])
    >>> lateness(times, np.ones(3, bool), np.zeros(3, int), None, delay_us=20, ahead_us=99)
    (array([ 0, 20,  0]), 60)
    """
    moves = known & (times_us <= arrived_at_us + ahead_us)
    start = _NEVER if high_us is None else high_us
    highest = np.maximum.accumulate(np.concatenate(([start], np.where(moves, times_us, _NEVER))))
    before, after = highest[:-1], int(highest[-1])
    behind = np.where(known & (before > _NEVER), before - delay_us - times_us, 0)
    return np.maximum(behind, 0), None if after == _NEVER else after
