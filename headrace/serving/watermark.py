"""How far event time has come, as it is told with answers and waited for by triggers.

The watermark is the highest event time of the slowest partition, less the delay. A partition from
which nothing has come for `idle` is set aside until it is heard again; the one heard last never
is. Whether a partition is idle is a question of processing time: when speed last took something
from it, not when that arrived, or a backlog would look like silence. So the watermark that is
told may depend on when it is asked; lateness and the values of views never do (see log/late.py).
The watermark never goes back: what was told at the newest commit is its floor, and between two
commits it only rises, since with time fewer partitions hold it back.
tests/serving/test_watermark.py checks both with a held clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EventTime:
    """The watermark, the partition that holds it back, and since when others are set aside."""

    watermark_us: int | None = None
    held_by: int | None = None
    idle: tuple[tuple[int, int], ...] = ()  # partition, when it was heard last


def event_time(
    highs: Sequence[int | None],
    heard_at: Sequence[int | None],
    told_us: int | None,
    now_us: int,
    delay_us: int,
    idle_us: int,
) -> EventTime:
    """How far a stream has come; a partition without any event time takes no part.

    >>> event_time((70, 50), (200, 190), None, now_us=210, delay_us=10, idle_us=60)
    EventTime(watermark_us=40, held_by=1, idle=())
    >>> event_time((70, 50), (200, 100), 40, now_us=210, delay_us=10, idle_us=60)
    EventTime(watermark_us=60, held_by=0, idle=((1, 100),))
    """
    known = {n: high for n, high in enumerate(highs) if high is not None}
    heard = {n: heard_at[n] or 0 for n in known}
    if not known:
        return EventTime(told_us)
    silent_before = min(now_us - idle_us, max(heard.values()))
    idle = tuple((n, at) for n, at in heard.items() if at < silent_before)
    active = [n for n in known if heard[n] >= silent_before]
    slowest = min(active, key=lambda n: known[n])
    mark_us = known[slowest] - delay_us
    return EventTime(mark_us if told_us is None else max(mark_us, told_us), slowest, idle)
