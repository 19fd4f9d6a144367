"""One subscription to a stream, and everybody who hears it, each at its own position.

    heard up to an id + heard after that id = heard without a break

The log and the master keep the rows, so nothing is kept here: a turn reads from where a hearer is,
and those at the same position share what is read. Every message has the position after it as its
id, and in `ends` the position after each row's event, so that who takes a part of it can resume. Of
events without a row the position alone is told, so that who resumes does not pass over them again.
A hearer that does not keep up waits where it is: it is read on for when it has room. A look may
take as long as a query on Spark does, so each channel has a thread of its own.
tests/serving/test_channel.py cuts what is heard at every id.
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
from headrace.serving.hearer import Heard, Hearer

ROWS, POSITION = "rows", "position"
EVENTS_MAX = 10_000  # of one turn
ROWS_MAX = 500  # of one message, unless a single event has more
WAITING_MAX = 64  # messages, above which a hearer is not read on for


@dataclass(frozen=True, slots=True)
class Placed:
    """A row, and the place of the event that it comes of."""

    partition: int
    offset: int
    row: dict[str, Any]


class Source(Protocol):
    """The rows of a stream by ranges of positions."""

    def end(self) -> Position:
        """The position after the last event."""

    def read(self, range: PositionRange) -> tuple[PositionRange, Sequence[Placed]]:
        """How far it could be read, which is some way, and the rows of that, partition by
        partition, in the order of the log.
        """


class Channel:
    """Who hears a stream, and how far each has heard."""

    linger_us = 0  # all that it knows is in the positions of its hearers

    def __init__(
        self,
        known: SubscribedStream,
        source: Source,
        lock: AbstractContextManager[Any],
        events_max: int = EVENTS_MAX,
    ) -> None:
        self.known, self.source, self.events_max = known, source, events_max
        self.name, self.lane = known.name, Lane(f"stream {known.name}", known.stream.name, known)
        self.hearers: dict[Hearer, Position] = {}  # how far each has heard
        self._lock = lock

    def join(self, hearer: Hearer, asked: StreamSubscription, after: str | None) -> None:
        """One more hears. Where it begins is told at once: who is cut off before the first row can
        come back to it.
        """
        position = self._beginning(asked, after)
        hearer.offer([_passed(position)])
        self.hearers[hearer] = position

    def _beginning(self, asked: StreamSubscription, after: str | None) -> Position:
        """After what it has heard, at the beginning, or now."""
        end, known = self.source.end(), self.known
        if after is None:
            return Position.start(len(end.offsets)) if asked.beginning else end
        position = parse_position(after, known.name, known.stream.partitions)
        if not position <= end:
            raise BadQuery(
                f"position {position} is beyond the end of stream '{known.name}', which is {end}",
                hint="go on with the id of a message that you have heard; without one it begins "
                "now.",
            )
        return position

    def look(self) -> int | None:
        """Read on for everybody who has room; at once again if there is more to be read now."""
        end, more = self.source.end(), False
        for position, hearers in self._groups():
            wanted = PositionRange(position, end)
            if len(wanted):
                taken = self._tell(wanted.limited(self.events_max), hearers)
                more = more or taken != end
        return 0 if more else None

    def _groups(self) -> Iterator[tuple[Position, list[Hearer]]]:
        """Those who have room, by position."""
        with self._lock:
            able = [(at, one) for one, at in self.hearers.items() if one.waiting < WAITING_MAX]
        able.sort(key=lambda pair: pair[0].offsets)
        for position, pairs in groupby(able, key=lambda pair: pair[0]):
            yield position, [hearer for _, hearer in pairs]

    def _tell(self, wanted: PositionRange, hearers: list[Hearer]) -> Position:
        taken, rows = self.source.read(wanted)
        said = list(messages(taken, rows))
        with self._lock:
            for hearer in hearers:
                hearer.offer(said)
            self.hearers |= {one: taken.upper for one in hearers if one in self.hearers}
        return taken.upper


def messages(taken: PositionRange, rows: Sequence[Placed]) -> Iterator[Heard]:
    """The rows of a range as they are told; the last id is the position after the range."""
    chunks = list(_chunks(rows))
    for number, chunk in enumerate(chunks, start=1):
        last = taken.after(chunk[-1].partition, chunk[-1].offset)
        after = taken.upper if number == len(chunks) else last
        ends = [str(taken.after(placed.partition, placed.offset)) for placed in chunk]
        ends = [str(after) if end == str(last) else end for end in ends]
        yield Heard(ROWS, {"rows": [placed.row for placed in chunk], "ends": ends}, str(after))
    if not chunks:
        yield _passed(taken.upper)


def _passed(position: Position) -> Heard:
    return Heard(POSITION, {}, str(position))


def _chunks(rows: Sequence[Placed]) -> Iterator[list[Placed]]:
    """Some rows at a time, all of an event together: between its rows there is no position."""
    chunk: list[Placed] = []
    for _, event in groupby(rows, key=lambda placed: (placed.partition, placed.offset)):
        if len(chunk) >= ROWS_MAX:
            yield chunk
            chunk = []
        chunk += event
    if chunk:
        yield chunk
