"""What speed remembers of a joined flow: the old events that a new one may still find.

The history is scratch: a pair of frames in Spark at one position, with the events dated since a
moment; if another position or an earlier moment is asked for, it is read again from master and log.
So an epoch finds every partner, however late its event is, and a lost memory costs only time.
tests/speed/test_memory.py checks the moments, tests/transcripts that answers do not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headrace.compile.flow import FlowPlan
from headrace.compile.plan import JoinPlan
from headrace.core.position import Position, PositionRange
from headrace.spark.feed import Feed

EVER = -(2**62)  # a moment before every event


class JoinHistory:
    """The old events of a joined flow."""

    def __init__(self, spark: Any, flow: FlowPlan, feeds: tuple[Feed, ...]) -> None:
        self.spark, self.flow, self.feeds = spark, flow, feeds
        self.position: Position | None = None
        self.since: list[int] = []
        self.frames: list[Any] = []

    def recall(self, position: Position, since: Sequence[int]) -> list[Any]:
        """The events before `position`, of each stream those dated since a moment."""
        known = self.position == position
        if not known or any(a < b for a, b in zip(since, self.since, strict=True)):
            self.frames = self._read(position, since)
            self.position, self.since = position, list(since)
        return self.frames

    def _read(self, position: Position, since: Sequence[int]) -> list[Any]:
        parts = zip(self.feeds, self.flow.positions(position), since, strict=True)
        return [
            _kept(feed.events(self.spark, PositionRange.before(part)), feed, moment)
            for feed, part, moment in parts
        ]

    def remember(self, position: Position, events: Sequence[Any], since: Sequence[int]) -> None:
        """Add the events up to `position`, and forget those dated before a moment."""
        parts = zip(self.feeds, self.frames, events, since, strict=True)
        self.frames = [
            _kept(frame.unionByName(added.select(*feed.columns)), feed, moment)
            for feed, frame, added, moment in parts
        ]
        self.position, self.since = position, list(since)


def _kept(events: Any, feed: Feed, since: int) -> Any:
    assert feed.stream.watermark is not None, "a joined stream has a watermark"
    time = f"`{feed.stream.watermark[0]}`"
    # Said in this form, groups of rows in the master's files that are all older are not read.
    bounded = f"{time} >= timestamp_micros({since})" if since > EVER // 2 else "true"
    recent = events.where(f"{time} IS NOT NULL AND {bounded}")
    # Without the checkpoint, the plan of each epoch would contain those of all epochs before; and
    # without the few partitions, each would have its own among all that came after.
    few = events.sparkSession.sparkContext.defaultParallelism
    return recent.coalesce(few).localCheckpoint()


def moments(
    flow: FlowPlan,
    joins: Iterable[JoinPlan],
    watermarks: Sequence[int | None],
    lows: Sequence[int | None],
) -> list[int]:
    """Of each stream the moment since which its old events matter.

    A new event dated t (from `lows` on, or on time, so after its stream's watermark) looks for
    partners in an interval around t. An old one that it finds, or that still waits for a partner,
    must be seen together with its own old partners.
    """
    found = [min(_earliest(mark, low), 2**62) for mark, low in zip(watermarks, lows, strict=True)]
    since = [2**62] * len(flow.streams)
    names = [stream.name for stream in flow.streams]
    for join in joins:
        left, right = names.index(join.left), names.index(join.right)
        first_left, first_right = found[right] - join.upper_us, found[left] + join.lower_us
        since[left] = min(since[left], first_left, first_right - join.upper_us)
        since[right] = min(since[right], first_right, first_left + join.lower_us)
    return [max(moment, EVER) for moment in since]


def _earliest(watermark: int | None, low: int | None) -> int:
    if watermark is None:
        return EVER
    return watermark if low is None else min(watermark, low)
