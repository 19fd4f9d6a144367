"""One subscription text about a view, and everybody who hears it.

A hearer begins with `relation`, all rows told so far, and then hears each pane as it is told. Who
comes back with the number of the last event it heard goes on after it, as long as the newest
`events_kept` events hold it; else it hears `reset`, and the relation anew. Numbers begin at the
microsecond at which the feed was made, so a number of an earlier feed is never one of this.
A hearer that does not keep up hears `slow`, which is its last event.
tests/serving/test_feed.py checks each.
"""

from __future__ import annotations

from collections import deque
from contextlib import AbstractContextManager
from typing import Any

import msgspec

from headrace.core.subscription import Form
from headrace.define.settings import SubscribeSettings
from headrace.serving.account import Look
from headrace.serving.broadcast import Lane
from headrace.serving.hearer import Heard, Hearer
from headrace.serving.watch import Watch

PANE, RELATION, RESET = "pane", "relation", "reset"


class PaneFeed:
    """The panes of one subscription, the newest of them kept."""

    lane = Lane("subscriptions")

    def __init__(
        self, watch: Watch, settings: SubscribeSettings, lock: AbstractContextManager[Any]
    ) -> None:
        self.watch, self.name, self.linger_us = watch, watch.asked.view, settings.linger_us
        self.hearers: dict[Hearer, None] = {}
        self._kept: deque[Heard] = deque(maxlen=settings.events_kept)
        self._first = watch.account.sequence  # before the oldest event that is kept
        self._lock = lock

    def look(self) -> int | None:
        """Look, and tell everybody what is new."""
        found = self.watch.look()  # it may read the whole view, and nobody waits for that
        if found is not None:
            with self._lock:
                self.watch.told(found)
                self._tell(found)
        return self.watch.due_us

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

    def join(self, hearer: Hearer, after: int | None) -> None:
        """One more hears, from after that event on."""
        hearer.offer(self._beginning(after), always=True)
        self.hearers[hearer] = None

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
