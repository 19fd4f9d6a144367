"""The watermark: how far event time has come. Answers report it; triggers, patterns, timers and
outer joins wait for it.

The watermark is the highest event time of the slowest partition, less the delay. A partition
without events for `idle` is ignored until it receives one again; the one that received an event
last is never ignored. Idleness is measured in processing time: when speed last received an event,
not when the event arrived, so that a backlog does not look idle. So a watermark is decided once, by
the epoch or build that advances a flow to a position, and saved with that position in the
transaction of its rows; all others read it there. It never goes back. Where idleness alone advances
it, speed commits an epoch without events. Lateness does not depend on it (see log/lateness.py).
tests/serving/test_watermark.py checks it with a fake clock, tests/transcripts what waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.core.position import Position

Times = tuple[int | None, ...]  # in microseconds


@dataclass(frozen=True, slots=True)
class FlowProgress:
    """A position of a flow, and how far event time has come there.

    >>> here, later = (FlowProgress(Position((3,)), (9,), (mark,)) for mark in (4, 5))
    >>> here <= later, later <= here
    (True, False)
    """

    position: Position
    highs: Times  # the highest event time in each partition
    marks: Times  # the watermark of each stream

    def __le__(self, other: FlowProgress) -> bool:
        """Whether the other is at least as far, both in the log and in event time."""
        pairs = zip(self.marks, other.marks, strict=True)
        return self.position <= other.position and all(
            mark is None or (far is not None and mark <= far) for mark, far in pairs
        )

    @property
    def watermark_us(self) -> int | None:
        """The watermark of the slowest stream, once all have one."""
        known = [mark for mark in self.marks if mark is not None]
        return min(known) if len(known) == len(self.marks) else None


@dataclass(frozen=True, slots=True)
class EventTime:
    """The watermark, the partition that holds it back, and the idle partitions."""

    watermark_us: int | None = None
    held_by: int | None = None
    idle: tuple[tuple[int, int], ...] = ()  # partition, when it last received an event


def event_time(
    highs: Sequence[int | None],
    received_at: Sequence[int | None],
    before_us: int | None,
    now_us: int,
    delay_us: int,
    idle_us: int,
) -> EventTime:
    """The event time of a stream; a partition without any event time is ignored.

    >>> event_time((70, 50), (200, 190), None, now_us=210, delay_us=10, idle_us=60)
    EventTime(watermark_us=40, held_by=1, idle=())
    >>> event_time((70, 50), (200, 100), 40, now_us=210, delay_us=10, idle_us=60)
    EventTime(watermark_us=60, held_by=0, idle=((1, 100),))
    """
    known = {n: high for n, high in enumerate(highs) if high is not None}
    received = {n: received_at[n] or 0 for n in known}
    if not known:
        return EventTime(before_us)
    idle_before = min(now_us - idle_us, max(received.values()))
    idle = tuple((n, at) for n, at in received.items() if at < idle_before)
    active = [n for n in known if received[n] >= idle_before]
    slowest = min(active, key=lambda n: known[n])
    mark_us = known[slowest] - delay_us
    return EventTime(mark_us if before_us is None else max(mark_us, before_us), slowest, idle)
