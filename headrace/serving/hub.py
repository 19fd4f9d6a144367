"""All subscriptions of a running project: equal texts about a view share a feed, those about a
stream a channel.

A feed without hearers is kept for `subscribe.linger`, so that one who was cut off can go on, and is
then forgotten. More than `subscribe.connections_max` hearers at a time are refused. After a restart
there are no feeds, and who comes back to a view hears `reset`; to a stream it is nothing special.
tests/serving/test_hub.py and tests/serving/test_streams.py check it.
"""

from __future__ import annotations

from collections.abc import Callable

from headrace.compile.plan import Plan
from headrace.compile.stream_subscription import SubscribedStream, is_stream, subscribed_stream
from headrace.compile.view_subscription import shape_of
from headrace.core.errors import NotReady
from headrace.core.report import Report
from headrace.core.subscription import Subscription, ViewShape
from headrace.core.time import Clock, now_us
from headrace.define.settings import SubscribeSettings
from headrace.define.stream_subscription import read_stream_subscription, subscribed_name
from headrace.define.view_subscription import read_subscription
from headrace.serving.account import Account
from headrace.serving.broadcast import Broadcast
from headrace.serving.catalog import read_plan
from headrace.serving.channel import WAITING_MAX, Channel, Source
from headrace.serving.database import Database
from headrace.serving.feed import PaneFeed
from headrace.serving.hearer import Hearer, News
from headrace.serving.read import Reader
from headrace.serving.watch import Watch, subscribed

Opens = Callable[[SubscribedStream], Source]  # what cannot be read is told as an error


class Hub:
    """Who hears what."""

    def __init__(
        self,
        db: Database,
        settings: SubscribeSettings,
        opens: Opens,
        clock: Clock = now_us,
        report: Report = lambda kind, fields: None,
    ) -> None:
        self.settings, self.opens = settings, opens
        self.reader = Reader(db, rows_max=settings.rows_max, clock=clock)
        most = settings.connections_max
        self.broadcast = Broadcast("subscribe", most, db.changes, clock, report)

    def join(self, text: str, after: str | None = None, news: News = lambda: None) -> Hearer:
        """Hear a subscription, from after that id on."""
        name, plan = subscribed_name(text), self._plan()
        join = self._join_stream if is_stream(plan, name) else self._join_view
        return join(plan, text, after, news)

    def _join_view(self, plan: Plan, text: str, after: str | None, news: News) -> Hearer:
        asked = read_subscription(text)
        shape, sequence = shape_of(plan, asked), None if after is None else _sequence(after)
        hearer = Hearer(self.settings.waiting_max, news, self.broadcast.leave)
        wanted = {asked: lambda: self._feed(asked, shape)}
        self.broadcast.join(wanted, lambda feed: feed.join(hearer, sequence))
        return hearer

    def _join_stream(self, plan: Plan, text: str, after: str | None, news: News) -> Hearer:
        asked = read_stream_subscription(text)
        known = subscribed_stream(plan, asked)

        def taken(many: int) -> None:
            if many >= WAITING_MAX:  # it was not read on for, and has room now
                self.broadcast.tell(known.stream.name)

        hearer = Hearer(None, news, self.broadcast.leave, taken)
        wanted = {known: lambda: Channel(known, self.opens(known), self.broadcast.lock)}
        self.broadcast.join(wanted, lambda channel: channel.join(hearer, asked, after))
        return hearer

    def _plan(self) -> Plan:
        with self.reader.db.read() as db:
            plan = read_plan(db)
        if plan is None:
            raise NotReady("nothing is deployed yet", hint="try again in a moment.")
        return plan

    def _feed(self, asked: Subscription, shape: ViewShape) -> PaneFeed:
        watch = Watch(self.reader, asked, shape, Account(sequence=self.reader.clock()))
        # What cannot be read is told as an error to the one who asks first.
        subscribed(self.reader, asked, limit=1)
        return PaneFeed(watch, self.settings, self.broadcast.lock)


def _sequence(text: str) -> int:
    """The number of a pane; a text that is none was never given by us, so it is as an old one."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else -1
