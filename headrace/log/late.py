"""Whether an event is late, decided by the log's own order and by nothing else.

An event is late iff its time is before (highest event time before it in its partition) - delay.
An event that is dated more than an hour after its arrival comes from a wrong clock: it does not
move the highest. The highest so far is handed from one range of the log to the next, so always
    late(a + b, high) == late(a, high), late(b, high after a).
tests/log/test_late.py checks this equation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headrace.core.time import HOUR

AHEAD_US_MAX = HOUR
_NEVER = -(1 << 62)  # before every time, and far enough from the edge to subtract a delay


def mark_late(
    times_us: NDArray[np.int64],
    known: NDArray[np.bool_],
    arrived_at_us: NDArray[np.int64],
    delay_us: int,
    high_us: int | None,
) -> tuple[NDArray[np.bool_], int | None]:
    """Which events are late, and the highest event time after them; `known` are those with a time.

    >>> times = np.array([50, 10, 60])
    >>> mark_late(times, np.ones(3, bool), np.zeros(3, int), 20, None)
    (array([False,  True, False]), 60)
    """
    moves = known & (times_us <= arrived_at_us + AHEAD_US_MAX)
    start = _NEVER if high_us is None else high_us
    highest = np.maximum.accumulate(np.concatenate(([start], np.where(moves, times_us, _NEVER))))
    before, after = highest[:-1], int(highest[-1])
    late = known & (before > _NEVER) & (times_us < before - delay_us)
    return late, None if after == _NEVER else after
