"""All subscriptions of a running project: one feed a text, one thread for all feeds.

The thread asks each feed a few times a second whether its view has moved. A feed without hearers is
kept for `subscribe.linger`, so that one who was cut off can go on, and is then forgotten. More than
`subscribe.connections_max` hearers at a time are refused. After a restart there are no feeds, and
who comes back hears `reset`. tests/serving/test_hub.py checks it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog

from headrace.compile.plan import Plan
from headrace.compile.subscribe import shape_of
from headrace.core.errors import HeadraceError, InternalError, NotReady, Overloaded, Unavailable
from headrace.core.subscription import Subscription
from headrace.core.time import Clock, now_us
from headrace.define.settings import SubscribeSettings
from headrace.define.subscribing import read_subscription
from headrace.serving.account import Account
from headrace.serving.catalog import read_plan
from headrace.serving.feed import END, FAILED, Feed, Heard, Hearer
from headrace.serving.read import Reader
from headrace.serving.sqlite import Sqlite
from headrace.serving.watch import Watch, subscribed

log = structlog.get_logger()
TURN_S = 0.1


class Hub:
    """Who hears what."""

    def __init__(self, db: Sqlite, settings: SubscribeSettings, clock: Clock = now_us) -> None:
        self.settings, self.clock = settings, clock
        self.reader = Reader(db, rows_max=settings.rows_max, clock=clock)
        self._feeds: dict[Subscription, Feed] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def join(
        self, text: str, after: int | None = None, news: Callable[[], None] = lambda: None
    ) -> Hearer:
        """Hear a subscription, from after that event on; `news` is called when something comes."""
        asked = read_subscription(text)
        shape_of(self._plan(), asked)
        with self._lock:
            self._check_room()
            feed = self._feeds.get(asked) or self._open(asked)
            self._feeds[asked] = feed
            hearer = feed.join(after, news, lambda left: feed.leave(left, self.clock()))
            self._start()
        return hearer

    def _plan(self) -> Plan:
        with self.reader.db.read() as db:
            plan = read_plan(db)
        if plan is None:
            raise NotReady("nothing is deployed yet", hint="try again in a moment.")
        return plan

    def open(self) -> int:
        """How many hear something now."""
        return sum(len(feed.hearers) for feed in list(self._feeds.values()))

    def _check_room(self) -> None:
        if self._stop.is_set():
            raise Unavailable("the project is stopping")
        most = self.settings.connections_max
        if self.open() >= most:
            raise Overloaded(
                f"more than {most} subscriptions are open",
                hint="close one, or raise subscribe.connections_max.",
            )

    def _open(self, asked: Subscription) -> Feed:
        account = Account(sequence=self.clock())
        watch = Watch(self.reader, asked, shape_of(self._plan(), asked), account)
        # What cannot be read is told as an error to the one who asks first.
        subscribed(self.reader, asked, limit=1)
        return Feed(watch, self.settings.events_kept, self.settings.waiting_max)

    # The thread

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="subscriptions", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(TURN_S):
            self.turn()

    def turn(self) -> None:
        """Ask each feed once whether there is something to tell."""
        for asked, feed in self._tidied().items():
            try:
                feed.step()
            except Unavailable as error:
                log.warning("subscription.waits", view=asked.view, reason=error.message)
            except Exception as error:
                with self._lock:
                    self._feeds.pop(asked, None)
                feed.end(Heard(FAILED, _told(error, asked).as_dict()))

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
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        for feed in self._feeds.values():
            feed.end(Heard(END, {"reason": "the project is stopping"}))


def _told(error: Exception, asked: Subscription) -> HeadraceError:
    """The error as a hearer may know it; what nobody foresaw is in the log."""
    if isinstance(error, HeadraceError):
        return error
    log.error("subscription.failed", view=asked.view, exc_info=error)
    return InternalError(
        f"the subscription to '{asked.view}' met a problem that it did not expect",
        hint="the server's log has more; subscribe again.",
    )
