"""The matches of a watch, event by event.

A watch reads one event at a time, so the reference evaluates it for each event alone. In each step
the new events are taken in the order of their times; the match that ends the watch is the last, and
an event that arrived at UNTIL or later does not match. This is the specification of watches and
shares no code with the engine. tests/testing/test_reference_watch.py checks it by hand, and the
transcripts `watch_*` compare the engines.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headrace.core.time import iso
from headrace.testing.declarations import WatchDeclaration
from headrace.testing.reference import Reference, Timestamp

Event = dict[str, Any]
Row = dict[str, Any]


@dataclass
class ReferenceWatch:
    """One watch and its past; its stream's event time is in `time_column`."""

    watch: WatchDeclaration
    stream: str
    time_column: str | None
    reference: Reference
    matches: list[Row] = field(default_factory=list)
    why: str | None = None  # it has ended
    _new: list[tuple[Event, int]] = field(default_factory=list)

    def take(self, events: list[Event], arrived_us: int) -> None:
        self._new += [(event, arrived_us) for event in events]

    def advance(self, now_us: int) -> None:
        """Take the new events, then check whether the time is over."""
        until = self.watch.until_us
        for event, arrived_us in sorted(self._new, key=self._order):
            if until is None or arrived_us < until:
                self._match(event)
        self._new = []
        if self.why is None and until is not None and now_us >= until:
            self.why = f"its UNTIL time was reached: {iso(until)}"

    def _order(self, new: tuple[Event, int]) -> tuple[int, int]:
        event, arrived_us = new
        time = event.get(self.time_column or "")
        return time.us if isinstance(time, Timestamp) else arrived_us, event["_offset"]

    def _match(self, event: Event) -> None:
        for row in self._rows(self.watch.name, event) if self.why is None else ():
            self.matches.append(row)
            count = len(self.matches)
            if self.watch.when and self._rows(self.watch.done, event):
                self.why = "its WHEN condition was met"
            elif count == self.watch.matches_max:
                self.why = f"it had {count} {'match' if count == 1 else 'matches'}"

    def _rows(self, query: str, event: Event) -> list[Row]:
        return self.reference.answer(query, {self.stream: [event]})
