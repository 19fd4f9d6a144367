"""Topics that are refreshed after commits, once for all their subscribers.

    commit  ->  the topic is refreshed  ->  new events  ->  each subscriber, in order

Commits      A notification says only that something was committed; a refresh reads the current
             state. Several commits may become one change, but the newest is never lost: a commit
             during a refresh causes another refresh after it.
Threads      Each lane has a thread. The writer only sets an event and never waits; an event loop is
             woken by `on_event`. After a refresh the thread pauses for as long as the refresh took,
             at most PAUSE_S_MAX, which leaves processor time to others; a refresh that is due is
             not delayed. A topic that changes with time alone says when it is due.
Subscribing  A subscriber receives its first events and is added under the lock that is held while
             publishing, so no event is lost in between.
Slow readers The events buffered for a subscriber are bounded: beyond that it receives `slow` as its
             last event, or nothing more is read for it until it has room (see
             headrace/serving/subscriber.py, headrace/serving/stream_feed.py).
Cleanup      A topic without subscribers is dropped after its `linger_us`; a thread without topics
             ends.

Commits of other processes are not reported. None is missed: the process that holds the run lock is
the only writer and the only one with broadcasts, and other processes subscribe to it over HTTP.
Appends to the log are reported in the same way, under the name of the stream.
tests/serving/test_broadcast.py checks each.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import structlog

from headrace.core.errors import Overloaded, Unavailable
from headrace.core.report import Report
from headrace.core.time import MILLISECOND, SECOND, Clock, now_us
from headrace.core.worker import Worker
from headrace.serving.changes import Changes
from headrace.serving.subscriber import END, Subscriber, SubscriptionEvent, failure_event

log = structlog.get_logger()
COMMITS = ""  # the source of commits of the store; other sources are names of streams
RETRY_US, PAUSE_S_MAX = 200 * MILLISECOND, 0.1
K = TypeVar("K", bound=Hashable)
T = TypeVar("T", bound="Topic")


class Lane(NamedTuple):
    """A thread and the source that wakes it. A topic with slow refreshes has a lane of its own."""

    name: str
    source: str = COMMITS
    only: Hashable = None


class Topic(Protocol):
    """What can be subscribed to."""

    name: str
    lane: Lane
    linger_us: int
    subscribers: dict[Subscriber, Any]

    def refresh(self) -> int | None:
        """Publish what is new; returns when to refresh again although nothing is committed.
        Refreshes of one topic never overlap.
        """


@dataclass(slots=True)
class _LaneThread:
    worker: Worker
    wakeup: threading.Event
    due_us: int | None = None


class Broadcast:
    """Topics by key, their subscribers, and the threads that refresh them."""

    def __init__(
        self,
        name: str,  # of the section of settings
        connections_max: int,
        changes: Changes,
        clock: Clock = now_us,
        report: Report = lambda kind, fields: None,
    ) -> None:
        self.name, self.connections_max, self.clock = name, connections_max, clock
        self.topics: dict[Hashable, Topic] = {}
        self.lock = threading.RLock()  # never held during a refresh
        self._changes, self._report = changes, report
        self._empty: dict[Hashable, int] = {}  # since when a topic has no subscribers
        # Replaced and never changed, so that the writer reads it without the lock.
        self._threads: Mapping[Lane, _LaneThread] = {}
        self._stop = threading.Event()
        changes.subscribe(self.notify)

    @property
    def subscribers_count(self) -> int:
        with self.lock:
            return len({one for topic in self.topics.values() for one in topic.subscribers})

    @property
    def workers(self) -> list[Worker]:
        return [thread.worker for thread in self._threads.values()]

    def notify(self, source: str = COMMITS) -> None:
        """Something was committed. Called by the writer, so it never waits."""
        for lane, thread in self._threads.items():
            if lane.source == source:
                thread.wakeup.set()

    def subscribe(self, wanted: Mapping[K, Callable[[], T]], enter: Callable[[T], None]) -> None:
        """Subscribe to topics, which are created if they do not exist. `enter` adds the subscriber
        to a topic and offers it the first events.
        """
        self._check_open()
        known: dict[Hashable, Any] = self.topics
        made = {key: known.get(key) or make() for key, make in wanted.items()}
        with self.lock:
            self._check_open()
            topics: dict[Hashable, Any] = {key: known.get(key, one) for key, one in made.items()}
            for topic in topics.values():
                enter(topic)
            known |= topics
            self._drop_empty()  # resets since when they had been empty
            for lane in {topic.lane for topic in topics.values()}:
                self._start(lane)

    def _check_open(self) -> None:
        if self._stop.is_set():
            raise Unavailable("the project is shutting down")
        if self.subscribers_count >= self.connections_max:
            raise Overloaded(
                f"more than {self.connections_max} subscriptions are open",
                hint=f"close one, or raise {self.name}.connections_max.",
            )

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Remove a subscriber from all topics."""
        with self.lock:
            for topic in self.topics.values():
                topic.subscribers.pop(subscriber, None)
            self._drop_empty()
            for thread in self._threads.values():
                thread.wakeup.set()  # it may have no topics left, or be due at another time

    def _drop_empty(self) -> None:
        """Drop the topics that have been without subscribers for their `linger_us`."""
        now, empty = self.clock(), [key for key, one in self.topics.items() if not one.subscribers]
        self._empty = {key: self._empty.get(key, now) for key in empty}
        for key in [key for key in empty if self._dropped_at(key) <= now]:
            del self.topics[key], self._empty[key]

    def _dropped_at(self, key: Hashable) -> int:
        return self._empty[key] + self.topics[key].linger_us

    def stop(self) -> None:
        """Send `end` to all subscribers and stop the threads."""
        self._changes.unsubscribe(self.notify)
        with self.lock:
            self._stop.set()
            for topic in self.topics.values():
                _send_last(
                    topic, SubscriptionEvent(END, {"reason": "the project is shutting down"})
                )
            for thread in self._threads.values():
                thread.wakeup.set()
            workers = self.workers
        for worker in workers:
            worker.join()

    # The threads

    def _start(self, lane: Lane) -> None:
        if lane not in self._threads:
            worker = Worker(lane.name, partial(self._turn, lane), self._stop, self._report)
            self._threads = {**self._threads, lane: _LaneThread(worker, threading.Event())}
            worker.start()
        self._threads[lane].wakeup.set()

    def _turn(self, lane: Lane) -> float | None:
        """Wait for a notification and refresh the lane; returns how long to pause."""
        thread = self._threads[lane]
        due = thread.due_us
        thread.wakeup.wait(None if due is None else max(0, due - self.clock()) / SECOND)
        thread.wakeup.clear()  # a commit from here on causes another turn
        if self._stop.is_set():
            return None
        began = time.monotonic()
        thread.due_us = 0  # at once, if this refresh fails
        thread.due_us = due = self.refresh_lane(lane)
        with self.lock:
            if all(topic.lane != lane for topic in self.topics.values()):
                self._threads = {one: t for one, t in self._threads.items() if one != lane}
                return None
        more = due is not None and due <= self.clock()
        return 0.0 if more else min(time.monotonic() - began, PAUSE_S_MAX)

    def refresh_lane(self, lane: Lane) -> int | None:
        """Refresh each topic of a lane once; returns when one is due next."""
        with self.lock:
            self._drop_empty()
            topics = {key: one for key, one in self.topics.items() if one.lane == lane}
            ends = [self._dropped_at(key) for key in self._empty]
        dues = [self._refresh(key, topic) for key, topic in topics.items()]
        return min((due for due in (*ends, *dues) if due is not None), default=None)

    def _refresh(self, key: Hashable, topic: Topic) -> int | None:
        try:
            return topic.refresh()
        except Unavailable as error:
            log.warning("subscription.waits", to=topic.name, reason=error.message)
            return self.clock() + RETRY_US
        except Exception as error:
            with self.lock:
                if self.topics.get(key) is topic:  # and not a newer topic of the same key
                    del self.topics[key]
                _send_last(topic, failure_event(error, topic.name))
                topic.subscribers.clear()
            return None


def _send_last(topic: Topic, event: SubscriptionEvent) -> None:
    for subscriber in topic.subscribers:
        subscriber.offer([event], always=True)
