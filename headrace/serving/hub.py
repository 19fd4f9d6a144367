"""All subscriptions of a running project: equal subscriptions to a view share a ViewFeed, those to
a stream a StreamFeed. What Spark computes of a stream is shared by the subscriptions of one user,
so that it waits for no other user's queries.

A view feed without subscribers is kept for `subscribe.linger`, so that a client that was
disconnected can resume, and is then dropped. More than `subscribe.connections_max` subscribers at a
time are refused. A restart drops all feeds, so a client that reconnects to a view receives `reset`;
a client of a stream resumes as usual. tests/serving/test_hub.py and tests/serving/test_streams.py
check it.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from headrace.access.caller import OWNER
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
from headrace.serving.broadcast import Broadcast
from headrace.serving.catalog import read_plan
from headrace.serving.database import Database
from headrace.serving.emit_state import EmitState
from headrace.serving.read import Reader
from headrace.serving.stream_feed import WAITING_MAX, StreamFeed, StreamSource
from headrace.serving.subscriber import OnEvent, Subscriber
from headrace.serving.view_feed import ViewFeed
from headrace.serving.view_tracker import ViewTracker, read_subscribed

OpenSource = Callable[[SubscribedStream], StreamSource]  # raises if the stream cannot be read


class Hub:
    """All subscriptions and their feeds."""

    def __init__(
        self,
        db: Database,
        settings: SubscribeSettings,
        open_source: OpenSource,
        clock: Clock = now_us,
        report: Report = lambda kind, fields: None,
    ) -> None:
        self.settings, self.open_source = settings, open_source
        self.reader = Reader(db, rows_max=settings.rows_max, clock=clock)
        most = settings.connections_max
        self.broadcast = Broadcast("subscribe", most, db.changes, clock, report)

    def subscribe(
        self,
        text: str,
        after: str | None = None,
        on_event: OnEvent = lambda: None,
        user: str = OWNER.user,
    ) -> Subscriber:
        """Open a subscription that resumes after this id."""
        name, plan = subscribed_name(text), self._plan()
        if is_stream(plan, name):
            return self._subscribe_to_stream(plan, text, after, on_event, user)
        return self._subscribe_to_view(plan, text, after, on_event)

    def _subscribe_to_view(
        self, plan: Plan, text: str, after: str | None, on_event: OnEvent
    ) -> Subscriber:
        subscription = read_subscription(text)
        shape, sequence = shape_of(plan, subscription), None if after is None else _sequence(after)
        subscriber = Subscriber(self.settings.waiting_max, on_event, self.broadcast.unsubscribe)
        feeds = {subscription: lambda: self._feed(subscription, shape)}
        self.broadcast.subscribe(feeds, lambda feed: feed.subscribe(subscriber, sequence))
        return subscriber

    def _subscribe_to_stream(
        self, plan: Plan, text: str, after: str | None, on_event: OnEvent, user: str
    ) -> Subscriber:
        subscription = read_stream_subscription(text)
        known = subscribed_stream(plan, subscription)
        known = known if known.plain else msgspec.structs.replace(known, user=user)

        def on_poll(count: int) -> None:
            if count >= WAITING_MAX:  # its buffer was full, and has room now
                self.broadcast.notify(known.stream.name)

        subscriber = Subscriber(None, on_event, self.broadcast.unsubscribe, on_poll)
        feeds = {known: lambda: StreamFeed(known, self.open_source(known), self.broadcast.lock)}
        self.broadcast.subscribe(
            feeds, lambda feed: feed.subscribe(subscriber, subscription, after)
        )
        return subscriber

    def _plan(self) -> Plan:
        with self.reader.db.read() as db:
            plan = read_plan(db)
        if plan is None:
            raise NotReady("nothing is deployed yet", hint="try again in a moment.")
        return plan

    def _feed(self, subscription: Subscription, shape: ViewShape) -> ViewFeed:
        state = EmitState(sequence=self.reader.clock())
        tracker = ViewTracker(self.reader, subscription, shape, state)
        # A view that cannot be read raises here, for the first subscriber.
        read_subscribed(self.reader, subscription, limit=1)
        return ViewFeed(tracker, self.settings, self.broadcast.lock)


def _sequence(text: str) -> int:
    """The number of a pane; a text that is not a number is handled like an unknown pane."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else -1
