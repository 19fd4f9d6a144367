"""A stream in memory: its rows by their places, as a source gives them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from headrace.compile.stream_subscription import subscribed_stream
from headrace.core.position import Position, PositionRange
from headrace.define.stream_subscription import read_stream_subscription
from headrace.serving.stream_feed import StreamFeed, StreamRow, StreamSource
from headrace.serving.subscriber import Subscriber

from .bench import PLAN

CLICKS = read_stream_subscription("SUBSCRIBE TO clicks FROM BEGINNING")


@dataclass
class Held:
    """`values[partition][offset]` are the rows of an event: none, one or more of them."""

    values: tuple[list[tuple[int, ...]], ...] = field(default_factory=lambda: ([], []))
    asked: list[PositionRange] = field(default_factory=list)
    events_max: int = 1_000_000
    appended: Callable[[], None] = lambda: None

    def send(self, partition: int, *rows: int) -> None:
        """One event that becomes these rows."""
        self.values[partition].append(rows)
        self.appended()

    def end(self) -> Position:
        return Position(tuple(map(len, self.values)))

    def read(self, range: PositionRange) -> tuple[PositionRange, Sequence[StreamRow]]:
        taken = range.limited(self.events_max)
        self.asked.append(taken)
        return taken, [
            StreamRow(partition, offset, {"n": row})
            for partition, span in taken.intervals()
            for offset, rows in enumerate(self.values[partition])
            if span.lower <= offset < span.upper
            for row in rows
        ]


def feed_of(source: StreamSource, events_max: int = 1_000_000) -> StreamFeed:
    """A feed that a test looks at by hand."""
    return StreamFeed(subscribed_stream(PLAN, CLICKS), source, threading.RLock(), events_max)


def joined(feed: StreamFeed, position: Position) -> Subscriber:
    subscriber = Subscriber(
        None, lambda: None, lambda left: feed.subscribers.pop(left, None) and None
    )
    feed.subscribe(subscriber, CLICKS, str(position))
    return subscriber
