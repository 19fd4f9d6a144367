"""One subscription text, and everybody who hears it.

A hearer begins with `relation`, all rows told so far, and then hears each pane as it is told. Who
comes back with the number of the last event it heard goes on after it, as long as the newest
`kept` events hold it; else it hears `reset`, and the relation anew. Numbers begin at the
microsecond at which the feed was made, so a number of an earlier feed is never one of this.
A hearer that does not keep up hears `slow`, which is its last event.
tests/serving/test_feed.py checks each.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from headrace.core.subscription import Form
from headrace.serving.account import Look
from headrace.serving.hearer import Heard, Hearer
from headrace.serving.watch import Watch

PANE, RELATION, RESET = "pane", "relation", "reset"


class Feed:
    """The panes of one subscription, the newest of them kept."""

    def __init__(self, watch: Watch, kept: int, waiting_max: int) -> None:
        self.watch, self.waiting_max = watch, waiting_max
        self.hearers: list[Hearer] = []
        self.empty_since_us: int | None = None
        self._kept: deque[Heard] = deque(maxlen=kept)
        self._first = watch.account.sequence  # before the oldest event that is kept
        self._lock = threading.Lock()

    def step(self) -> None:
        """Look, and tell everybody what is new."""
        found = self.watch.look()  # it may read the whole view, and nobody waits for that
        if found is None:
            return
        with self._lock:
            self.watch.told(found)
            self._tell(found)

    def _tell(self, found: Look) -> None:
        events = [
            Heard(PANE, msgspec.to_builtins(pane), str(pane.sequence)) for pane in found.panes
        ]
        for event in events:
            if len(self._kept) == self._kept.maxlen:
                self._first = self._kept[0].data["sequence"]
            self._kept.append(event)
        if events:
            for hearer in self.hearers:
                hearer.offer(events)

    def join(
        self, after: int | None, news: Callable[[], None], left: Callable[[Hearer], None]
    ) -> Hearer:
        """One more hears, from after that event on."""
        hearer = Hearer(self.waiting_max, news, left)
        with self._lock:
            hearer.offer(self._beginning(after), always=True)
            self.hearers.append(hearer)
            self.empty_since_us = None
        return hearer

    def _beginning(self, after: int | None) -> list[Heard]:
        newest = self.watch.account.sequence
        if after is not None and self._first <= after <= newest:
            return [event for event in self._kept if event.data["sequence"] > after]
        relation = Heard(RELATION, {"rows": self._rows()}, str(newest))
        if after is None:
            return [relation]
        reason = f"event {after} is not kept any more; here is the relation anew"
        return [Heard(RESET, {"reason": reason}), relation]

    def _rows(self) -> list[Any]:
        """All rows that were told."""
        rows = [told.row for told in self.watch.account.rows.values() if told.row is not None]
        whole = self.watch.asked.form is Form.RELATION
        return [row for told in rows for row in told["rows"]] if whole else rows

    def leave(self, hearer: Hearer, now_us: int) -> None:
        with self._lock:
            if hearer in self.hearers:
                self.hearers.remove(hearer)
            if not self.hearers:
                self.empty_since_us = now_us

    def end(self, event: Heard) -> None:
        """Everybody hears this as the last."""
        with self._lock:
            for hearer in self.hearers:
                hearer.offer([event], always=True)
