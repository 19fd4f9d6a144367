"""All subscriptions to streams: a channel and a thread for each text that somebody hears.

A turn may take as long as a query on Spark does, so neither views nor other streams wait for it.
A channel without hearers is forgotten at once, because all that it knew is in their positions; so a
restart is nothing special for them. tests/serving/test_streams.py checks it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog

from headrace.compile.follow import Followed, followed
from headrace.compile.plan import Plan
from headrace.core.errors import BadQuery, Unavailable
from headrace.core.position import Position, position_of
from headrace.core.subscription import StreamSubscription
from headrace.define.following import read_stream_subscription
from headrace.serving.channel import Channel, Source
from headrace.serving.hearer import Heard, Hearer, failure

log = structlog.get_logger()
TURN_S = 0.2
Opens = Callable[[Followed], Source]  # what cannot be read is told as an error


class Streams:
    """Who hears which stream."""

    def __init__(self, opens: Opens, turn_s: float = TURN_S) -> None:
        self._opens, self._turn_s = opens, turn_s
        self._channels: dict[Followed, Channel] = {}
        self._threads: set[threading.Thread] = set()
        self._lock = threading.Lock()
        self._stop = threading.Event()

    @property
    def hearers(self) -> int:
        with self._lock:
            return sum(len(channel.places) for channel in self._channels.values())

    def opened(self, plan: Plan, text: str, after: str | None) -> tuple[Followed, Source, Position]:
        """All that is needed to hear a stream, checked. It may have to wait for Spark."""
        asked = read_stream_subscription(text)
        known = followed(plan, asked)
        channel = self._channels.get(known)
        source = channel.source if channel else self._opens(known)
        return known, source, _beginning(known, asked, source.end(), after)

    def join(
        self, known: Followed, source: Source, position: Position, news: Callable[[], None]
    ) -> Hearer:
        """Hear a stream that was opened, from this position on."""
        with self._lock:
            if known not in self._channels:
                self._start(known, Channel(source))
            channel = self._channels[known]
            hearer = Hearer(None, news, channel.leave)
            channel.join(hearer, position)
        return hearer

    def _start(self, known: Followed, channel: Channel) -> None:
        thread = threading.Thread(
            target=self._run, args=(known, channel), name=f"stream {known.name}", daemon=True
        )
        self._channels[known] = channel
        self._threads.add(thread)
        thread.start()

    def _run(self, known: Followed, channel: Channel) -> None:
        more = True
        while not self._stop.wait(0 if more else self._turn_s) and self._heard(known, channel):
            try:
                more = channel.turn()
            except Unavailable as error:
                more = False
                log.warning("subscription.waits", stream=known.name, reason=error.message)
            except Exception as error:
                self._forget(known)
                channel.end(failure(error, known.name))
                return

    def _heard(self, known: Followed, channel: Channel) -> bool:
        """Whether somebody hears the channel; else it is no more."""
        with self._lock:
            heard = bool(channel.places)
            if not heard:
                self._drop(known)
            return heard

    def _forget(self, known: Followed) -> None:
        with self._lock:
            self._drop(known)

    def _drop(self, known: Followed) -> None:
        del self._channels[known]
        self._threads.discard(threading.current_thread())

    def stop(self, event: Heard) -> None:
        """Everybody hears this as the last."""
        self._stop.set()
        with self._lock:
            threads = set(self._threads)
            for channel in self._channels.values():
                channel.end(event)
        for thread in threads:
            thread.join()


def _beginning(
    known: Followed, asked: StreamSubscription, end: Position, after: str | None
) -> Position:
    """Where a hearer begins: after what it has heard, at the beginning, or now."""
    if after is None:
        return Position.start(len(end.offsets)) if asked.beginning else end
    position = position_of(after, known.name, known.stream.partitions)
    if not position <= end:
        raise BadQuery(
            f"position {position} is beyond the end of stream '{known.name}', which is {end}",
            hint="go on with the id of a message that you have heard; without one it begins now.",
        )
    return position
