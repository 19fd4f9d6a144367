"""All subscriptions of a running project: one feed a text about a view, one thread for all feeds.
Those to streams are in headrace/serving/streams.py.

The thread asks each feed a few times a second whether its view has moved. A feed without hearers is
kept for `subscribe.linger`, so that one who was cut off can go on, and is then forgotten. More than
`subscribe.connections_max` hearers at a time, of views and streams, are refused. After a restart
there are no feeds, and who comes back to a view hears `reset`. tests/serving/test_hub.py checks it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog

from headrace.compile.follow import is_stream
from headrace.compile.plan import Plan
from headrace.compile.subscribe import shape_of
from headrace.core.errors import NotReady, Overloaded, Unavailable
from headrace.core.report import Report
from headrace.core.subscription import Subscription
from headrace.core.time import Clock, now_us
from headrace.core.worker import Worker
from headrace.define.following import subscribed_name
from headrace.define.settings import SubscribeSettings
from headrace.define.subscribing import read_subscription
from headrace.serving.account import Account
from headrace.serving.catalog import read_plan
from headrace.serving.database import Database
from headrace.serving.feed import Feed
from headrace.serving.hearer import END, Heard, Hearer, failure
from headrace.serving.read import Reader
from headrace.serving.streams import Streams
from headrace.serving.watch import Watch, subscribed

log = structlog.get_logger()
TURN_S = 0.1


class Hub:
    """Who hears what."""

    def __init__(
        self,
        db: Database,
        settings: SubscribeSettings,
        streams: Streams,
        clock: Clock = now_us,
        report: Report = lambda kind, fields: None,
    ) -> None:
        self.settings, self.streams, self.clock, self._report = settings, streams, clock, report
        self.reader = Reader(db, rows_max=settings.rows_max, clock=clock)
        self._feeds: dict[Subscription, Feed] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self.worker: Worker | None = None

    def join(
        self, text: str, after: str | None = None, news: Callable[[], None] = lambda: None
    ) -> Hearer:
        """Hear a subscription, from after that id on; `news` is called when something comes."""
        name = subscribed_name(text)
        plan = self._plan()
        if not is_stream(plan, name):
            return self._join_view(plan, text, after, news)
        opened = self.streams.opened(plan, text, after)
        with self._lock:
            self._check_room()
            return self.streams.join(*opened, news)

    def _join_view(
        self, plan: Plan, text: str, after: str | None, news: Callable[[], None]
    ) -> Hearer:
        asked = read_subscription(text)
        shape_of(plan, asked)
        sequence = None if after is None else _sequence(after)
        with self._lock:
            self._check_room()
            feed = self._feeds.get(asked) or self._open(asked)
            self._feeds[asked] = feed
            hearer = feed.join(sequence, news, lambda left: feed.leave(left, self.clock()))
            self._start()
        return hearer

    def _plan(self) -> Plan:
        with self.reader.db.read() as db:
            plan = read_plan(db)
        if plan is None:
            raise NotReady("nothing is deployed yet", hint="try again in a moment.")
        return plan

    def _check_room(self) -> None:
        if self._stop.is_set():
            raise Unavailable("the project is stopping")
        most = self.settings.connections_max
        if self.hearers >= most:
            raise Overloaded(
                f"more than {most} subscriptions are open",
                hint="close one, or raise subscribe.connections_max.",
            )

    @property
    def hearers(self) -> int:
        """How many hear something."""
        return self.streams.hearers + sum(len(feed.hearers) for feed in self._feeds.values())

    def _open(self, asked: Subscription) -> Feed:
        account = Account(sequence=self.clock())
        watch = Watch(self.reader, asked, shape_of(self._plan(), asked), account)
        # What cannot be read is told as an error to the one who asks first.
        subscribed(self.reader, asked, limit=1)
        return Feed(watch, self.settings.events_kept, self.settings.waiting_max)

    # The thread

    def _start(self) -> None:
        if self.worker is None:
            given = "subscriptions", self.turn, self._stop, self._report
            self.worker = Worker(*given, first_s=TURN_S)
            self.worker.start()

    def turn(self) -> float:
        """Ask each feed once whether there is something to tell."""
        for asked, feed in self._tidied().items():
            try:
                feed.step()
            except Unavailable as error:
                log.warning("subscription.waits", view=asked.view, reason=error.message)
            except Exception as error:
                with self._lock:
                    self._feeds.pop(asked, None)
                feed.end(failure(error, asked.view))
        return TURN_S

    def _tidied(self) -> dict[Subscription, Feed]:
        """The feeds that somebody hears, or may come back to."""
        oldest = self.clock() - self.settings.linger_us
        with self._lock:
            self._feeds = {
                asked: feed
                for asked, feed in self._feeds.items()
                if feed.empty_since_us is None or feed.empty_since_us > oldest
            }
            return dict(self._feeds)

    def stop(self) -> None:
        """Everybody hears the end."""
        end = Heard(END, {"reason": "the project is stopping"})
        with self._lock:
            self._stop.set()
        self.streams.stop(end)
        if self.worker is not None:
            self.worker.join()
        for feed in self._feeds.values():
            feed.end(end)


def _sequence(text: str) -> int:
    """The number of a pane; a text that is none was never given by us, so it is as an old one."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else -1
