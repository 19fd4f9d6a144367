"""How far event time has come: what is told with answers, and what triggers, patterns, timers and
outer rows wait for.

The watermark is the highest event time of the slowest partition, less the delay. A partition from
which nothing has come for `idle` is set aside until it is heard again; the one heard last never
is. Whether a partition is idle is a question of processing time: when speed last took something
from it, not when that arrived, or a backlog would look like silence. So a watermark is decided
once, by the epoch or the build that brings a flow to a place, and kept with that place in the
transaction of its rows: all others read it there. It never goes back. Where silence alone would
bring it further, speed commits an epoch without events. Lateness does not depend on it (see
log/lateness.py). tests/serving/test_watermark.py checks it with a held clock, tests/transcripts
what waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.core.position import Position

Times = tuple[int | None, ...]  # in microseconds


@dataclass(frozen=True, slots=True)
class FlowProgress:
    """A place in the log of a flow, and how far event time had come there.

    >>> here, later = (FlowProgress(Position((3,)), (9,), (mark,)) for mark in (4, 5))
    >>> here <= later, later <= here
    (True, False)
    """

    position: Position
    highs: Times  # the highest event time in each partition
    marks: Times  # the watermark of each stream

    def __le__(self, other: FlowProgress) -> bool:
        """Whether the other is as far, both in the log and in event time."""
        pairs = zip(self.marks, other.marks, strict=True)
        return self.position <= other.position and all(
            mark is None or (far is not None and mark <= far) for mark, far in pairs
        )

    @property
    def watermark_us(self) -> int | None:
        """Of joined streams the slowest's, once all have one."""
        known = [mark for mark in self.marks if mark is not None]
        return min(known) if len(known) == len(self.marks) else None


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
