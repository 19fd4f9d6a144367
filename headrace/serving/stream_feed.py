"""One subscription to a stream, shared by its subscribers, each at its own position.

    events up to an id + events after that id = events without interruption

The log and the master keep the rows, so nothing is kept here: a refresh reads from the position of
each subscriber, and subscribers at the same position share one read. Every message has the position
after it as its id, and in `ends` the position after each row's event, so that a client that
processed a part of it can resume. Where events have no rows, the position alone is sent, so that a
client that resumes does not read them again. A subscriber whose buffer is full stays at its
position until it has room. A refresh may take as long as a query on Spark, so each feed has a
thread of its own. tests/serving/test_stream_feed.py cuts the messages at every id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol

from headrace.compile.stream_subscription import SubscribedStream
from headrace.core.errors import BadQuery
from headrace.core.position import Position, PositionRange, parse_position
from headrace.core.subscription import StreamSubscription
from headrace.serving.broadcast import Lane
from headrace.serving.subscriber import Subscriber, SubscriptionEvent

ROWS, POSITION = "rows", "position"
EVENTS_MAX = 10_000  # of one refresh
ROWS_MAX = 500  # of one message, unless a single event has more
WAITING_MAX = 64  # messages; with more, nothing is read for a subscriber


@dataclass(frozen=True, slots=True)
class StreamRow:
    """A row with the partition and offset of its event."""

    partition: int
    offset: int
    row: dict[str, Any]


class StreamSource(Protocol):
    """Reads the rows of a stream by ranges of positions."""

    def end(self) -> Position:
        """The position after the last event."""

    def read(self, range: PositionRange) -> tuple[PositionRange, Sequence[StreamRow]]:
        """The part of the range that was read, which is not empty, and its rows: partition by
        partition, in the order of the log.
        """


class StreamFeed:
    """The subscribers of a stream, and the position of each."""

    linger_us = 0  # the positions of its subscribers are all its state

    def __init__(
        self,
        known: SubscribedStream,
        source: StreamSource,
        lock: AbstractContextManager[Any],
        events_max: int = EVENTS_MAX,
    ) -> None:
        self.known, self.source, self.events_max = known, source, events_max
        self.name, self.lane = known.name, Lane(f"stream {known.name}", known.stream.name, known)
        self.subscribers: dict[Subscriber, Position] = {}
        self._lock = lock

    def subscribe(
        self, subscriber: Subscriber, subscription: StreamSubscription, after: str | None
    ) -> None:
        """Add a subscriber. Its first position is sent at once, so that a client that is
        disconnected before the first row can resume from it.
        """
        position = self._first_position(subscription, after)
        subscriber.offer([_position_event(position)])
        self.subscribers[subscriber] = position

    def _first_position(self, subscription: StreamSubscription, after: str | None) -> Position:
        """The position to resume from, the beginning, or the end of the log."""
        end, known = self.source.end(), self.known
        if after is None:
            return Position.start(len(end.offsets)) if subscription.beginning else end
        position = parse_position(after, known.name, known.stream.partitions)
        if not position <= end:
            raise BadQuery(
                f"position {position} is beyond the end of stream '{known.name}' at {end}",
                hint="resume after the id of a message that you have received; without an id the "
                "subscription begins now.",
            )
        return position

    def refresh(self) -> int | None:
        """Read for every subscriber that has room; due at once if there is more to read."""
        end, more = self.source.end(), False
        for position, subscribers in self._by_position():
            unread = PositionRange(position, end)
            if len(unread):
                upper = self._publish(unread.limited(self.events_max), subscribers)
                more = more or upper != end
        return 0 if more else None

    def _by_position(self) -> Iterator[tuple[Position, list[Subscriber]]]:
        """The subscribers that have room, by position."""
        with self._lock:
            ready = [(at, one) for one, at in self.subscribers.items() if one.waiting < WAITING_MAX]
        ready.sort(key=lambda pair: pair[0].offsets)
        for position, pairs in groupby(ready, key=lambda pair: pair[0]):
            yield position, [subscriber for _, subscriber in pairs]

    def _publish(self, unread: PositionRange, subscribers: list[Subscriber]) -> Position:
        range, rows = self.source.read(unread)
        events = list(messages(range, rows))
        with self._lock:
            for subscriber in subscribers:
                subscriber.offer(events)
            self.subscribers |= {one: range.upper for one in subscribers if one in self.subscribers}
        return range.upper


def messages(range: PositionRange, rows: Sequence[StreamRow]) -> Iterator[SubscriptionEvent]:
    """The rows of a range as events; the last id is the position after the range."""
    chunks = list(_chunks(rows))
    for number, chunk in enumerate(chunks, start=1):
        last = range.after(chunk[-1].partition, chunk[-1].offset)
        after = range.upper if number == len(chunks) else last
        ends = [str(range.after(row.partition, row.offset)) for row in chunk]
        ends = [str(after) if end == str(last) else end for end in ends]
        yield SubscriptionEvent(
            ROWS, {"rows": [row.row for row in chunk], "ends": ends}, str(after)
        )
    if not chunks:
        yield _position_event(range.upper)


def _position_event(position: Position) -> SubscriptionEvent:
    return SubscriptionEvent(POSITION, {}, str(position))


def _chunks(rows: Sequence[StreamRow]) -> Iterator[list[StreamRow]]:
    """Chunks of rows; the rows of one event stay together, because no position is between them."""
    chunk: list[StreamRow] = []
    for _, event in groupby(rows, key=lambda row: (row.partition, row.offset)):
        if len(chunk) >= ROWS_MAX:
            yield chunk
            chunk = []
        chunk += event
    if chunk:
        yield chunk
