"""Topics that are told at commits: each is looked at once, for all who subscribe to it.

    commit  ->  the topic looks  ->  what is new  ->  each subscriber, in the order of the looks

Who    The subscribers of a topic. A commit says only that it happened; a look reads what is there
       now. So several commits may be one change, but the newest is never left out: what is
       committed during a look is looked for after it.
When   At once, by a thread of the broadcast. The writer sets an event and waits for nobody; an
       event loop is called (`news`). After its looks a thread rests for as long as they took, at
       most REST_S_MAX, so that many commits leave time to others; what is due is not delayed.
       A topic that changes with time alone says when it is due.
First  A subscriber gets its beginning and becomes one under the lock that is held to tell, so
       nothing is lost between the two.
Slow   What waits for a subscriber is bounded: above that `slow` is its last event, or it is not
       read on for (see headrace/serving/hearer.py, headrace/serving/channel.py).
Gone   A topic without subscribers is forgotten after its `linger_us`; a thread without topics ends.

Commits of another process are not told. None is missed by that: the process that holds the run lock
is the only one that writes, the only one with broadcasts, and all others subscribe to it over HTTP.
Appends to the log are told in the same way, by the name of the stream.
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
from headrace.serving.hearer import END, Heard, Hearer, failure

log = structlog.get_logger()
COMMITS = ""  # the source of what the store has; the log's have the names of streams
RETRY_US, REST_S_MAX = 200 * MILLISECOND, 0.1
K = TypeVar("K", bound=Hashable)
T = TypeVar("T", bound="Topic")


class Lane(NamedTuple):
    """A thread, and by what it is told. A topic whose looks are slow has a lane of its own."""

    name: str
    source: str = COMMITS
    only: Hashable = None


class Topic(Protocol):
    """What can be subscribed to."""

    name: str
    lane: Lane
    linger_us: int
    hearers: dict[Hearer, Any]

    def look(self) -> int | None:
        """Tell what is new; when to look again although nothing is committed. No two looks at a
        topic run at a time.
        """


@dataclass(slots=True)
class _Running:
    """The thread of a lane."""

    worker: Worker
    told: threading.Event
    due_us: int | None = None


class Broadcast:
    """Topics by key, their subscribers, and the threads that look at them."""

    def __init__(
        self,
        name: str,  # of the settings
        connections_max: int,
        changes: Changes,
        clock: Clock = now_us,
        report: Report = lambda kind, fields: None,
    ) -> None:
        self.name, self.connections_max, self.clock = name, connections_max, clock
        self.topics: dict[Hashable, Topic] = {}
        self.lock = threading.RLock()  # never held during a look
        self._changes, self._report = changes, report
        self._empty: dict[Hashable, int] = {}  # since when nobody subscribes to a topic
        # Replaced and never changed, so that the writer reads it without the lock.
        self._running: Mapping[Lane, _Running] = {}
        self._stop = threading.Event()
        changes.subscribe(self.tell)

    @property
    def subscribers(self) -> int:
        with self.lock:
            return len({hearer for topic in self.topics.values() for hearer in topic.hearers})

    @property
    def workers(self) -> list[Worker]:
        return [running.worker for running in self._running.values()]

    def tell(self, source: str = COMMITS) -> None:
        """Something was committed. The writer calls it, so it waits for nobody."""
        for lane, running in self._running.items():
            if lane.source == source:
                running.told.set()

    def join(self, wanted: Mapping[K, Callable[[], T]], enter: Callable[[T], None]) -> None:
        """Subscribe to topics, which are made if nobody has. `enter` adds to the hearers of each,
        with what it begins with.
        """
        self._check_room()
        known: dict[Hashable, Any] = self.topics
        made = {key: known.get(key) or make() for key, make in wanted.items()}
        with self.lock:
            self._check_room()
            topics: dict[Hashable, Any] = {key: known.get(key, one) for key, one in made.items()}
            for topic in topics.values():
                enter(topic)
            known |= topics
            self._forget()  # since when they had been empty
            for lane in {topic.lane for topic in topics.values()}:
                self._start(lane)

    def _check_room(self) -> None:
        if self._stop.is_set():
            raise Unavailable("the project is stopping")
        if self.subscribers >= self.connections_max:
            raise Overloaded(
                f"more than {self.connections_max} subscriptions are open",
                hint=f"close one, or raise {self.name}.connections_max.",
            )

    def leave(self, hearer: Hearer) -> None:
        """Subscribe to nothing any more."""
        with self.lock:
            for topic in self.topics.values():
                topic.hearers.pop(hearer, None)
            self._forget()
            for running in self._running.values():
                running.told.set()  # it may be over, or due at another time

    def _forget(self) -> None:
        """Forget the topics to which nobody subscribes, nor may come back."""
        now, empty = self.clock(), [key for key, one in self.topics.items() if not one.hearers]
        self._empty = {key: self._empty.get(key, now) for key in empty}
        for key in [key for key in empty if self._until_us(key) <= now]:
            del self.topics[key], self._empty[key]

    def _until_us(self, key: Hashable) -> int:
        return self._empty[key] + self.topics[key].linger_us

    def stop(self) -> None:
        """Everybody hears the end."""
        self._changes.unsubscribe(self.tell)
        with self.lock:
            self._stop.set()
            for topic in self.topics.values():
                _end(topic, Heard(END, {"reason": "the project is stopping"}))
            for running in self._running.values():
                running.told.set()
            workers = self.workers
        for worker in workers:
            worker.join()

    # The threads

    def _start(self, lane: Lane) -> None:
        if lane not in self._running:
            worker = Worker(lane.name, partial(self._turn, lane), self._stop, self._report)
            self._running = {**self._running, lane: _Running(worker, threading.Event())}
            worker.start()
        self._running[lane].told.set()

    def _turn(self, lane: Lane) -> float | None:
        """Wait until there may be something new, and look; how long to rest."""
        running = self._running[lane]
        due = running.due_us
        running.told.wait(None if due is None else max(0, due - self.clock()) / SECOND)
        running.told.clear()  # what is committed from here on is looked for after this turn
        if self._stop.is_set():
            return None
        began = time.monotonic()
        running.due_us = due = self.turn(lane)
        with self.lock:
            if all(topic.lane != lane for topic in self.topics.values()):
                self._running = {one: r for one, r in self._running.items() if one != lane}
                return None
        more = due is not None and due <= self.clock()
        return 0.0 if more else min(time.monotonic() - began, REST_S_MAX)

    def turn(self, lane: Lane) -> int | None:
        """Look once at each topic of a lane; when one is due next."""
        with self.lock:
            self._forget()
            topics = {key: one for key, one in self.topics.items() if one.lane == lane}
            ends = [self._until_us(key) for key in self._empty]
        dues = [self._look(key, topic) for key, topic in topics.items()]
        return min((due for due in (*ends, *dues) if due is not None), default=None)

    def _look(self, key: Hashable, topic: Topic) -> int | None:
        try:
            return topic.look()
        except Unavailable as error:
            log.warning("subscription.waits", to=topic.name, reason=error.message)
            return self.clock() + RETRY_US
        except Exception as error:
            with self.lock:
                if self.topics.get(key) is topic:  # and not another that has followed it
                    del self.topics[key]
                _end(topic, failure(error, topic.name))
                topic.hearers.clear()
            return None


def _end(topic: Topic, event: Heard) -> None:
    for hearer in topic.hearers:
        hearer.offer([event], always=True)
