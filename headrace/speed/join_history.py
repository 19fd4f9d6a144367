"""The join history of speed: the old events of a joined flow that a new event may still match.

It is a cache: one frame per stream in Spark, at one position, with the events since a timestamp.
For another position or an earlier timestamp it is read again from master and log. So an epoch finds
every partner, however late its event is, and a lost history costs only time.
tests/speed/test_join_history.py checks the timestamps, tests/transcripts that answers do not depend
on the cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headrace.compile.flow import FlowPlan
from headrace.compile.plan import JoinPlan
from headrace.core.position import Position, PositionRange
from headrace.spark.feed import Feed

BEGINNING = -(2**62)  # a timestamp before every event


class JoinHistory:
    """The old events of a joined flow."""

    def __init__(self, spark: Any, flow: FlowPlan, feeds: tuple[Feed, ...]) -> None:
        self.spark, self.flow, self.feeds = spark, flow, feeds
        self.position: Position | None = None
        self.since: list[int] = []
        self.frames: list[Any] = []

    def read(self, position: Position, since: Sequence[int]) -> list[Any]:
        """The events before `position`, of each stream those since a timestamp."""
        known = self.position == position
        if not known or any(a < b for a, b in zip(since, self.since, strict=True)):
            self.frames = self._read(position, since)
            self.position, self.since = position, list(since)
        return self.frames

    def _read(self, position: Position, since: Sequence[int]) -> list[Any]:
        parts = zip(self.feeds, self.flow.positions(position), since, strict=True)
        return [
            _recent(feed.events(self.spark, PositionRange.before(part)), feed, start)
            for feed, part, start in parts
        ]

    def append(self, position: Position, events: Sequence[Any], since: Sequence[int]) -> None:
        """Append the events up to `position`, and drop those before a timestamp."""
        parts = zip(self.feeds, self.frames, events, since, strict=True)
        self.frames = [
            _recent(frame.unionByName(added.select(*feed.columns)), feed, start)
            for feed, frame, added, start in parts
        ]
        self.position, self.since = position, list(since)


def _recent(events: Any, feed: Feed, since: int) -> Any:
    assert feed.stream.watermark is not None, "a joined stream has a watermark"
    time = f"`{feed.stream.watermark[0]}`"
    # In this form, Parquet row groups whose events are all older are skipped.
    bounded = f"{time} >= timestamp_micros({since})" if since > BEGINNING // 2 else "true"
    recent = events.where(f"{time} IS NOT NULL AND {bounded}")
    # Without the checkpoint, the plan of each epoch would contain those of all epochs before;
    # without coalesce, each epoch would add partitions.
    few = events.sparkSession.sparkContext.defaultParallelism
    return recent.coalesce(few).localCheckpoint()


def history_starts(
    flow: FlowPlan,
    joins: Iterable[JoinPlan],
    watermarks: Sequence[int | None],
    lows: Sequence[int | None],
) -> list[int]:
    """The timestamp, per stream, since which its old events are needed.

    A new event at t (at or after `lows`, or on time, so after its stream's watermark) joins
    partners in an interval around t. An old event that it matches, or that still waits for a
    partner, requires its own old partners too.
    """
    found = [min(_earliest(mark, low), 2**62) for mark, low in zip(watermarks, lows, strict=True)]
    since = [2**62] * len(flow.streams)
    names = [stream.name for stream in flow.streams]
    for join in joins:
        left, right = names.index(join.left), names.index(join.right)
        first_left, first_right = found[right] - join.upper_us, found[left] + join.lower_us
        since[left] = min(since[left], first_left, first_right - join.upper_us)
        since[right] = min(since[right], first_right, first_left + join.lower_us)
    return [max(start, BEGINNING) for start in since]


def _earliest(watermark: int | None, low: int | None) -> int:
    if watermark is None:
        return BEGINNING
    return watermark if low is None else min(watermark, low)
