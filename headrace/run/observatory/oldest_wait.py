"""How long the oldest event after a position has waited."""

from __future__ import annotations

from headrace.core.errors import NotFound
from headrace.core.position import Interval, Position, PositionRange
from headrace.log.protocol import LogReader


def oldest_wait_ms(reader: LogReader, position: Position, end: Position, now_us: int) -> int | None:
    """Milliseconds since the first event after a position arrived; 0 if there is none, None if it
    is not in the log any more.
    """
    arrivals = []
    for partition, interval in PositionRange(position, end.latest(position)).intervals():
        first = Interval(interval.lower, interval.lower + 1)
        try:
            arrivals.append(next(reader.blocks(partition, first)).arrived_at_us)
        except NotFound:
            return None
    return max(0, now_us - min(arrivals)) // 1000 if arrivals else 0
