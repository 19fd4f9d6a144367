"""Live topics: the present state of each, told to all who hear it when it has changed.

A topic is computed once, however many hear it, and encoded once; at most every `live.interval`.
Numbers of events begin at the microsecond at which the board was made and only grow, so what is
older has a smaller number, also after a restart. Who comes back hears the present state of each
topic, since a state needs no history. A hearer that does not keep up hears `slow` as its last.
tests/serving/test_board.py checks each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import msgspec
import structlog

from headrace.core.errors import HeadraceError, InternalError
from headrace.core.report import Report
from headrace.core.time import Clock, now_us
from headrace.define.settings import LiveSettings
from headrace.serving.broadcast import Broadcast, Lane
from headrace.serving.changes import Changes
from headrace.serving.hearer import Heard, Hearer, News

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class LiveTopic:
    """What can be heard: `make` gives its state, which `mark` says cheaply whether to ask for. A
    topic without a mark changes with time alone, and is asked for at each interval.
    """

    name: str
    make: Callable[[], Any]
    mark: Callable[[], Any] | None = None
    interval_us: int = 0


class _State:
    """A topic that somebody hears."""

    lane, linger_us = Lane("live"), 0

    def __init__(self, topic: LiveTopic, broadcast: Broadcast, numbers: Iterator[int]) -> None:
        self.topic, self.name, self.hearers = topic, topic.name, dict[Hearer, None]()
        self._broadcast, self._numbers = broadcast, numbers
        self._mark: Any = None
        self._next_us = 0  # it is not asked for before
        self._told = Heard(topic.name, msgspec.Raw())
        self.look()

    def join(self, hearer: Hearer) -> None:
        # With a number of its own, so that those of one hearer only grow.
        self._told = msgspec.structs.replace(self._told, id=str(next(self._numbers)))
        hearer.offer([self._told], always=True)
        self.hearers[hearer] = None

    def look(self) -> int | None:
        """Ask for the state, if it may be another, and tell it."""
        now, topic = self._broadcast.clock(), self.topic
        mark = _tried(topic, topic.mark) if topic.mark else None
        if mark is not None and mark == self._mark:
            return None
        if now < self._next_us:
            return self._next_us
        self._next_us = now + topic.interval_us
        made = _tried(topic, topic.make)
        # What went wrong is asked for again, though nothing has moved.
        self._mark = None if _failed(made) else mark
        self._tell(msgspec.Raw(msgspec.json.encode(made)))
        return self._next_us if self._mark is None else None

    def _tell(self, state: msgspec.Raw) -> None:
        with self._broadcast.lock:
            if bytes(self._told.data) != bytes(state):
                self._told = Heard(self.name, state, str(next(self._numbers)))
                for hearer in self.hearers:
                    hearer.offer([self._told])


class Board:
    """Who hears which topics. `topic_of` knows them by name, and refuses those that are none."""

    def __init__(
        self,
        settings: LiveSettings,
        topic_of: Callable[[str], LiveTopic],
        changes: Changes,
        clock: Clock = now_us,
        report: Report = lambda kind, fields: None,
    ) -> None:
        self.settings, self._topic_of, self._numbers = settings, topic_of, count(clock() + 1)
        self.broadcast = Broadcast("live", settings.connections_max, changes, clock, report)

    def join(self, names: Sequence[str], news: News = lambda: None) -> Hearer:
        """Hear topics: first the state of each, then each change."""
        topics = [self._topic_of(name) for name in dict.fromkeys(names)]
        hearer = Hearer(self.settings.waiting_max, news, self.broadcast.leave)
        wanted = {one.name: partial(_State, one, self.broadcast, self._numbers) for one in topics}
        self.broadcast.join(wanted, lambda state: state.join(hearer))
        return hearer


def _failed(made: Any) -> bool:
    return isinstance(made, dict) and "error" in made


def _tried(topic: LiveTopic, ask: Callable[[], Any]) -> Any:
    """What is answered; an error is a state too, because it may be over at the next look."""
    try:
        return ask()
    except HeadraceError as error:
        return {"error": error.as_dict()}
    except Exception as error:
        log.error("live.failed", topic=topic.name, exc_info=error)
        unexpected = InternalError(f"the topic '{topic.name}' met a problem that it did not expect")
        return {"error": unexpected.as_dict()}
