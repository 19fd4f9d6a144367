"""A topic whose refreshes a test makes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from headrace.serving.broadcast import Broadcast, Lane
from headrace.serving.subscriber import Subscriber, SubscriptionEvent


@dataclass
class CountingTopic:
    """Tells how many refreshes it has had; `during` is called in each and says when it is due."""

    broadcast: Broadcast
    lane: Lane = Lane("refreshes")
    linger_us: int = 0
    name: str = "counting"
    subscribers: dict[Subscriber, None] = field(default_factory=dict)
    during: Callable[[], int | None] = lambda: None
    refreshes: int = 0
    key: Hashable = None

    def refresh(self) -> int | None:
        due = self.during()
        with self.broadcast.lock:
            self.refreshes += 1
            for subscriber in self.subscribers:
                subscriber.offer([SubscriptionEvent("count", self.refreshes)])
        return due

    def subscribe(self, news: Callable[[], None] = lambda: None) -> Subscriber:
        """One who hears the count, and then each look."""
        subscriber = Subscriber(None, news, self.broadcast.unsubscribe)

        def enter(topic: CountingTopic) -> None:
            subscriber.offer([SubscriptionEvent("count", topic.refreshes)])
            topic.subscribers[subscriber] = None

        self.broadcast.subscribe({self.key or id(self): lambda: self}, enter)
        return subscriber
