"""One subscription to a view, shared by its subscribers.

A subscriber first receives `relation`, the rows as last emitted, and then each pane. A client that
reconnects with the number of its last event resumes after it while the newest `events_kept` events
hold it; else it receives `reset` and the relation again. Numbers start at the microsecond at which
the feed was created, so a number of an earlier feed is never one of this feed.
A subscriber that does not keep up receives `slow` as its last event.
tests/serving/test_view_feed.py checks each.
"""

from __future__ import annotations

from collections import deque
from contextlib import AbstractContextManager
from typing import Any

import msgspec

from headrace.core.subscription import Form
from headrace.define.settings import SubscribeSettings
from headrace.serving.broadcast import Lane
from headrace.serving.emit_state import Emission
from headrace.serving.subscriber import Subscriber, SubscriptionEvent
from headrace.serving.view_tracker import ViewTracker

PANE, RELATION, RESET = "pane", "relation", "reset"


class ViewFeed:
    """The panes of one subscription; the newest are kept."""

    lane = Lane("subscriptions")

    def __init__(
        self, tracker: ViewTracker, settings: SubscribeSettings, lock: AbstractContextManager[Any]
    ) -> None:
        self.tracker, self.linger_us = tracker, settings.linger_us
        self.name = tracker.subscription.view
        self.subscribers: dict[Subscriber, None] = {}
        self._kept: deque[SubscriptionEvent] = deque(maxlen=settings.events_kept)
        self._first = tracker.state.sequence  # before the oldest event that is kept
        self._lock = lock

    def refresh(self) -> int | None:
        """Send new panes to all subscribers."""
        emission = self.tracker.poll()  # may read the whole view, so without the lock
        if emission is not None:
            with self._lock:
                self.tracker.commit(emission)
                self._publish(emission)
        return self.tracker.due_us

    def _publish(self, emission: Emission) -> None:
        events = [
            SubscriptionEvent(PANE, msgspec.to_builtins(pane), str(pane.sequence))
            for pane in emission.panes
        ]
        for event in events:
            if len(self._kept) == self._kept.maxlen:
                self._first = self._kept[0].data["sequence"]
            self._kept.append(event)
        if events:
            for subscriber in self.subscribers:
                subscriber.offer(events)

    def subscribe(self, subscriber: Subscriber, after: int | None) -> None:
        """Add a subscriber that resumes after this event."""
        subscriber.offer(self._first_events(after), always=True)
        self.subscribers[subscriber] = None

    def _first_events(self, after: int | None) -> list[SubscriptionEvent]:
        newest = self.tracker.state.sequence
        if after is not None and self._first <= after <= newest:
            return [event for event in self._kept if event.data["sequence"] > after]
        relation = SubscriptionEvent(RELATION, {"rows": self._rows()}, str(newest))
        if after is None:
            return [relation]
        reason = f"event {after} is no longer retained; the whole relation follows"
        return [SubscriptionEvent(RESET, {"reason": reason}), relation]

    def _rows(self) -> list[Any]:
        """All rows as last emitted."""
        emitted = self.tracker.state.rows.values()
        rows = [entry.row for entry in emitted if entry.row is not None]
        whole = self.tracker.subscription.form is Form.RELATION
        return [row for answer in rows for row in answer["rows"]] if whole else rows
