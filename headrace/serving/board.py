"""Live topics: the present state of each, told to all who hear it when it has changed.

A topic is computed once, however many hear it, and encoded once; at most every `live.interval`.
Numbers of events begin at the microsecond at which the board was made and only grow, so what is
older has a smaller number, also after a restart. Who comes back hears the present state of each
topic, since a state needs no history. A hearer that does not keep up hears `slow` as its last.
tests/serving/test_board.py checks each.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import structlog

from headrace.core.errors import HeadraceError, InternalError, Overloaded, Unavailable
from headrace.core.report import Report
from headrace.core.time import SECOND, Clock, now_us
from headrace.core.worker import Worker
from headrace.define.settings import LiveSettings
from headrace.serving.hearer import END, Heard, Hearer

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Topic:
    """What can be heard: `make` gives its state, which `mark` says cheaply whether to ask for."""

    name: str
    make: Callable[[], Any]
    mark: Callable[[], Any] | None = None
    interval_us: int = 0


@dataclass(slots=True)
class _Channel:
    """A topic that somebody hears."""

    topic: Topic
    hearers: list[Hearer] = field(default_factory=list)
    told: Heard | None = None
    mark: Any = None
    looked_at: int = 0


class Board:
    """Who hears which topics. `topic_of` knows them by name, and refuses those that are none."""

    def __init__(
        self,
        settings: LiveSettings,
        topic_of: Callable[[str], Topic],
        clock: Clock = now_us,
        report: Report = lambda kind, fields: None,
    ) -> None:
        self.settings, self.clock, self._report = settings, clock, report
        self._topic_of = topic_of
        self._channels: dict[str, _Channel] = {}
        self._number = clock()
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        self._stop = threading.Event()
        self.worker: Worker | None = None

    def join(self, names: Sequence[str], news: Callable[[], None] = lambda: None) -> Hearer:
        """Hear topics: first the state of each, then each change."""
        topics = [self._topic_of(name) for name in dict.fromkeys(names)]
        hearer = Hearer(self.settings.waiting_max, news, self._leave)
        with self._looking:  # so that no turn comes between the first state and the next
            self._check_room()
            channels = [self._channel(topic) for topic in topics]
            states = [told for channel in channels if (told := channel.told)]
            hearer.offer(sorted(states, key=lambda told: int(told.id or 0)), always=True)
            with self._lock:
                for channel in channels:
                    self._channels[channel.topic.name] = channel
                    channel.hearers.append(hearer)
            self._start()
        return hearer

    def _channel(self, topic: Topic) -> _Channel:
        with self._lock:
            known = self._channels.get(topic.name)
        if known is not None:
            return known
        made = _Channel(topic)
        self._look(made, self.clock())
        return made

    def _check_room(self) -> None:
        if self._stop.is_set():
            raise Unavailable("the project is stopping")
        most = self.settings.connections_max
        if self.hearers() >= most:
            raise Overloaded(
                f"more than {most} readers hear live topics",
                hint="close one, or raise live.connections_max.",
            )

    def hearers(self) -> int:
        """How many hear something."""
        with self._lock:
            return len({id(one) for c in self._channels.values() for one in c.hearers})

    def _leave(self, hearer: Hearer) -> None:
        with self._lock:
            for name, channel in list(self._channels.items()):
                if hearer in channel.hearers:
                    channel.hearers.remove(hearer)
                if not channel.hearers:
                    del self._channels[name]

    # The thread

    def _start(self) -> None:
        if self.worker is None:
            given = "live", self._paced_turn, self._stop, self._report
            self.worker = Worker(*given, first_s=self.settings.interval_us / SECOND)
            self.worker.start()

    def _paced_turn(self) -> float:
        interval, began = self.settings.interval_us, self.clock()
        self.turn()
        # What a turn takes is part of the pause, but one that is slow leaves time to others.
        return max(interval // 2, interval - (self.clock() - began)) / SECOND

    def turn(self) -> None:
        """Look at each topic that is due, and tell what has changed."""
        with self._lock:
            channels = list(self._channels.values())
        for channel in channels:
            with self._looking:
                now = self.clock()
                if now - channel.looked_at >= channel.topic.interval_us:
                    before = channel.told
                    self._look(channel, now)
                    if channel.told is not None and channel.told is not before:
                        self._tell(channel, channel.told)

    def _tell(self, channel: _Channel, event: Heard) -> None:
        with self._lock:
            hearers = list(channel.hearers)
        for hearer in hearers:
            hearer.offer([event])

    def _look(self, channel: _Channel, now: int) -> None:
        """Ask for the state of a topic, if it may be another."""
        channel.looked_at = now
        mark = _tried(channel.topic, channel.topic.mark) if channel.topic.mark else None
        if mark is not None and mark == channel.mark and channel.told is not None:
            return
        made = _tried(channel.topic, channel.topic.make)
        state = msgspec.Raw(msgspec.json.encode(made))
        # What went wrong is asked for again, though nothing has moved.
        channel.mark = None if _failed(made) else mark
        if channel.told is None or bytes(channel.told.data) != bytes(state):
            self._number += 1
            channel.told = Heard(channel.topic.name, state, str(self._number))

    def stop(self) -> None:
        """Everybody hears the end."""
        self._stop.set()
        if self.worker is not None:
            self.worker.join()
        with self._lock:
            hearers = {id(one): one for c in self._channels.values() for one in c.hearers}
        for hearer in hearers.values():
            hearer.offer([Heard(END, {"reason": "the project is stopping"})], always=True)


def _failed(made: Any) -> bool:
    return isinstance(made, dict) and "error" in made


def _tried(topic: Topic, ask: Callable[[], Any]) -> Any:
    """What is answered; an error is a state too, because it may be over at the next look."""
    try:
        return ask()
    except HeadraceError as error:
        return {"error": error.as_dict()}
    except Exception as error:
        log.error("live.failed", topic=topic.name, exc_info=error)
        unexpected = InternalError(f"the topic '{topic.name}' met a problem that it did not expect")
        return {"error": unexpected.as_dict()}
