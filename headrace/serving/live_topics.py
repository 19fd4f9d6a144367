"""Live topics: the current state of each, published to its subscribers when it changes.

A topic is computed and encoded once for all subscribers, at most every `live.interval`. Event ids
are numbers that start at the microsecond at which this object was created and only grow, so that
they also grow across restarts. A subscriber that reconnects receives the current state of each
topic; a state needs no history. A subscriber that does not keep up receives `slow` as its last
event. tests/serving/test_live_topics.py checks each.
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
from headrace.serving.subscriber import OnEvent, Subscriber, SubscriptionEvent

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class LiveTopic:
    """A topic: `state` computes its state, `version` is a cheap value that changes with the state.
    A topic without a version changes with time alone and is computed at each interval.
    """

    name: str
    state: Callable[[], Any]
    version: Callable[[], Any] | None = None
    interval_us: int = 0


class _TopicFeed:
    """A topic that has subscribers."""

    lane, linger_us = Lane("live"), 0

    def __init__(self, topic: LiveTopic, broadcast: Broadcast, numbers: Iterator[int]) -> None:
        self.topic, self.name, self.subscribers = topic, topic.name, dict[Subscriber, None]()
        self._broadcast, self._numbers = broadcast, numbers
        self._version: Any = None
        self._next_us = 0  # the earliest time of the next computation
        self._published = SubscriptionEvent(topic.name, msgspec.Raw())
        self.refresh()

    def subscribe(self, subscriber: Subscriber) -> None:
        # A new id, because the ids that one subscriber receives must grow.
        self._published = msgspec.structs.replace(self._published, id=str(next(self._numbers)))
        subscriber.offer([self._published], always=True)
        self.subscribers[subscriber] = None

    def refresh(self) -> int | None:
        """Compute the state if it may have changed, and publish it."""
        now, topic = self._broadcast.clock(), self.topic
        version = _value_or_error(topic, topic.version) if topic.version else None
        if version is not None and version == self._version:
            return None
        if now < self._next_us:
            return self._next_us
        self._next_us = now + topic.interval_us
        state = _value_or_error(topic, topic.state)
        # An error is retried, although the version has not changed.
        self._version = None if _failed(state) else version
        self._publish(msgspec.Raw(msgspec.json.encode(state)))
        return self._next_us if self._version is None else None

    def _publish(self, state: msgspec.Raw) -> None:
        with self._broadcast.lock:
            if bytes(self._published.data) != bytes(state):
                self._published = SubscriptionEvent(self.name, state, str(next(self._numbers)))
                for subscriber in self.subscribers:
                    subscriber.offer([self._published])


class LiveTopics:
    """The subscribers of live topics. `topic_of` finds a topic by name and raises for an unknown
    name.
    """

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

    def subscribe(self, names: Sequence[str], on_event: OnEvent = lambda: None) -> Subscriber:
        """Receive first the state of each topic, then each change."""
        topics = [self._topic_of(name) for name in dict.fromkeys(names)]
        subscriber = Subscriber(self.settings.waiting_max, on_event, self.broadcast.unsubscribe)
        feeds = {
            topic.name: partial(_TopicFeed, topic, self.broadcast, self._numbers)
            for topic in topics
        }
        self.broadcast.subscribe(feeds, lambda feed: feed.subscribe(subscriber))
        return subscriber


def _failed(state: Any) -> bool:
    return isinstance(state, dict) and "error" in state


def _value_or_error(topic: LiveTopic, compute: Callable[[], Any]) -> Any:
    """The value, or the error as a state: it may be gone at the next refresh."""
    try:
        return compute()
    except HeadraceError as error:
        return {"error": error.as_dict()}
    except Exception as error:
        log.error("live.failed", topic=topic.name, exc_info=error)
        unexpected = InternalError(f"the topic '{topic.name}' failed with an unexpected error")
        return {"error": unexpected.as_dict()}
