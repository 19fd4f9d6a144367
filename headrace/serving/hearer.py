"""One who hears a subscription or live topics, and what is heard.

What comes waits until it is taken, at most `waiting_max` of it: then the hearer hears `slow`, which
is its last. Without that limit, whoever offers looks at what is `waiting` first.
tests/serving/test_feed.py and tests/serving/test_channel.py check both.
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
LAST = frozenset({SLOW, END, FAILED})  # after one of these comes nothing
News = Callable[[], None]  # called when something has come


class Heard(msgspec.Struct, frozen=True):
    """One event of a subscription; `id` is what to resume after: the number of a view's pane, or
    the position of a stream.
    """

    event: str
    data: Any
    id: str | None = None


class Hearing(Protocol):
    """A subscription, or live topics, that are open."""

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""

    def take(self, seconds: float = 0.0) -> list[Heard]:
        """What has come since; waits so long for the first of it."""

    def close(self) -> None: ...


class Hearer:
    """Takes what it is offered: `take` gives what has come since."""

    def __init__(
        self,
        waiting_max: int | None,
        news: News,
        left: Callable[[Hearer], None],
        taken: Callable[[int], None] = lambda many: None,
    ) -> None:
        self.ended = False
        self._news, self._left, self._taken = news, left, taken
        self._waiting_max = waiting_max
        self._waiting: deque[Heard] = deque()
        self._changed = threading.Condition()

    @property
    def waiting(self) -> int:
        """How many events have come that it has not taken."""
        return len(self._waiting)

    def take(self, seconds: float = 0.0) -> list[Heard]:
        """What has come; waits so long for the first of it."""
        with self._changed:
            if not self._waiting and not self.ended and seconds:
                self._changed.wait(seconds)
            taken = list(self._waiting)
            self._waiting.clear()
        self._taken(len(taken))
        return taken

    def close(self) -> None:
        """Hear nothing more."""
        self.ended = True
        self._left(self)

    def offer(self, events: Sequence[Heard], *, always: bool = False) -> None:
        """Give it events, unless it has too many already."""
        with self._changed:
            if self.ended:
                return
            most = None if always else self._waiting_max
            if most is not None and len(self._waiting) + len(events) > most:
                self._waiting.clear()
                reason = f"more than {most} messages waited to be read"
                events = [Heard(SLOW, {"reason": reason})]
            self._waiting.extend(events)
            self.ended = any(event.event in LAST for event in events)
            self._changed.notify_all()
        self._news()


def failure(error: Exception, name: str) -> Heard:
    """The error as a hearer may know it; what nobody foresaw is in the log."""
    if not isinstance(error, HeadraceError):
        log.error("subscription.failed", to=name, exc_info=error)
        error = InternalError(
            f"the subscription to '{name}' met a problem that it did not expect",
            hint="the server's log has more; subscribe again.",
        )
    return Heard(FAILED, error.as_dict())
