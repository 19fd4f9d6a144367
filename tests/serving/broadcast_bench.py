"""A topic whose looks a test makes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from headrace.serving.broadcast import Broadcast, Lane
from headrace.serving.hearer import Heard, Hearer


@dataclass
class Looked:
    """Tells how many looks it has had; `during` is called in each and says when it is due."""

    broadcast: Broadcast
    lane: Lane = Lane("looks")
    linger_us: int = 0
    name: str = "looked"
    hearers: dict[Hearer, None] = field(default_factory=dict)
    during: Callable[[], int | None] = lambda: None
    looks: int = 0
    key: Hashable = None

    def look(self) -> int | None:
        due = self.during()
        with self.broadcast.lock:
            self.looks += 1
            for hearer in self.hearers:
                hearer.offer([Heard("look", self.looks)])
        return due

    def join(self, news: Callable[[], None] = lambda: None) -> Hearer:
        """One who hears the count, and then each look."""
        hearer = Hearer(None, news, self.broadcast.leave)

        def enter(topic: Looked) -> None:
            hearer.offer([Heard("look", topic.looks)])
            topic.hearers[hearer] = None

        self.broadcast.join({self.key or id(self): lambda: self}, enter)
        return hearer
