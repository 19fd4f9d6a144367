"""A subscriber to a view, a stream or live topics, and the events it receives.

Events are buffered until the subscriber polls them. With `waiting_max`, a subscriber whose buffer
would grow beyond it receives `slow` as its last event. Without a limit, the sender checks `waiting`
before it offers more. tests/serving/test_view_feed.py and tests/serving/test_stream_feed.py check
both.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec
import structlog

from headrace.core.errors import HeadraceError, InternalError

log = structlog.get_logger()
SLOW, END, FAILED = "slow", "end", "failed"
LAST = frozenset({SLOW, END, FAILED})  # no event follows one of these
OnEvent = Callable[[], None]  # called when events were buffered


class SubscriptionEvent(msgspec.Struct, frozen=True):
    """One event of a subscription; `id` is what to resume after: the number of a view's pane, or
    the position of a stream.
    """

    event: str
    data: Any
    id: str | None = None


class OpenSubscription(Protocol):
    """An open subscription, or an open set of live topics."""

    @property
    def ended(self) -> bool:
        """Whether no more events will follow."""

    def poll(self, seconds: float = 0.0) -> list[SubscriptionEvent]:
        """The buffered events; waits up to `seconds` if there are none."""

    def close(self) -> None: ...


class Subscriber:
    """The buffer of one subscriber: feeds `offer` events, the subscriber `poll`s them."""

    def __init__(
        self,
        waiting_max: int | None,
        on_event: OnEvent,
        on_close: Callable[[Subscriber], None],
        on_poll: Callable[[int], None] = lambda count: None,
    ) -> None:
        self.ended = False
        self._on_event, self._on_close, self._on_poll = on_event, on_close, on_poll
        self._waiting_max = waiting_max
        self._waiting: deque[SubscriptionEvent] = deque()
        self._changed = threading.Condition()

    @property
    def waiting(self) -> int:
        """How many events are buffered."""
        return len(self._waiting)

    def poll(self, seconds: float = 0.0) -> list[SubscriptionEvent]:
        """The buffered events; waits up to `seconds` if there are none."""
        with self._changed:
            if not self._waiting and not self.ended and seconds:
                self._changed.wait(seconds)
            events = list(self._waiting)
            self._waiting.clear()
        self._on_poll(len(events))
        return events

    def close(self) -> None:
        """Receive no more events."""
        self.ended = True
        self._on_close(self)

    def offer(self, events: Sequence[SubscriptionEvent], *, always: bool = False) -> None:
        """Buffer events; if they exceed the limit, the buffer is replaced by `slow`. `always`
        ignores the limit.
        """
        with self._changed:
            if self.ended:
                return
            most = None if always else self._waiting_max
            if most is not None and len(self._waiting) + len(events) > most:
                self._waiting.clear()
                reason = f"the subscriber is too slow: more than {most} messages are waiting"
                events = [SubscriptionEvent(SLOW, {"reason": reason})]
            self._waiting.extend(events)
            self.ended = any(event.event in LAST for event in events)
            self._changed.notify_all()
        self._on_event()


def failure_event(error: Exception, name: str) -> SubscriptionEvent:
    """The error as an event; an unexpected one is logged and its details are not sent."""
    if not isinstance(error, HeadraceError):
        log.error("subscription.failed", to=name, exc_info=error)
        error = InternalError(
            f"the subscription to '{name}' failed with an unexpected error",
            hint="see the server's log, then subscribe again.",
        )
    return SubscriptionEvent(FAILED, error.as_dict())
