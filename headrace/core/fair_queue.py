"""A queue for a limited number of slots that is fair to users: a user with many entries delays only
their own.

A free slot goes to the user who holds the fewest, and among those to the one who has waited longest
since their last slot. No user holds more than a share of the slots, so that one user's slow work
never takes all. Waiting is bounded: when too many entries wait, the newest entry of the user with
the most waiting entries is dropped, not the newest of all. tests/core/test_fair_queue.py checks
each.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(eq=False, slots=True)
class FairQueueEntry:
    """One user's entry, waiting or running; `wake` is called when its state has changed."""

    user: str
    wake: Callable[[], None]
    state: Literal["waiting", "running", "dropped", "left"] = "waiting"


class FairQueue:
    """`most` slots, `share` of them for one user, and at most `waiting_max` entries that wait.

    >>> turns = FairQueue(most=2, share=1, waiting_max=8)
    >>> [turns.enter(user, lambda: None).state for user in ("ada", "ada", "bob")]
    ['running', 'waiting', 'running']
    """

    def __init__(self, most: int, share: int, waiting_max: int) -> None:
        self._most, self._share, self._waiting_max = most, share, waiting_max
        self._running = Counter[str]()
        self._waiting: dict[str, deque[FairQueueEntry]] = {}  # by user, the longest wait first
        self._lock = threading.Lock()

    @property
    def running(self) -> int:
        return self._running.total()

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    def enter(self, user: str, wake: Callable[[], None]) -> FairQueueEntry:
        """Enter the queue; the entry runs or waits. Call `leave` in either case."""
        turn = FairQueueEntry(user, wake)
        with self._lock:
            self._waiting.setdefault(user, deque()).append(turn)
            self._serve()
            if self.waiting > self._waiting_max:
                self._drop(user)
        return turn

    def leave(self, turn: FairQueueEntry) -> None:
        """Free the slot, or stop waiting."""
        with self._lock:
            if turn.state == "running":
                self._running[turn.user] -= 1
                self._running += Counter()  # drop users without a slot
            elif turn.state == "waiting":
                self._waiting[turn.user].remove(turn)
                self._tidy(turn.user)
            turn.state = "left"
            self._serve()

    def _serve(self) -> None:
        while self.running < self._most:
            able = [user for user in self._waiting if self._running[user] < self._share]
            if not able:
                return
            user = min(able, key=lambda name: self._running[name])
            turns = self._waiting.pop(user)
            self._running[user] += 1
            _become(turns.popleft(), "running")
            if turns:
                self._waiting[user] = turns

    def _drop(self, asks: str) -> None:
        user = max(self._waiting, key=lambda name: (len(self._waiting[name]), name == asks))
        turn = self._waiting[user].pop()
        self._tidy(user)
        _become(turn, "dropped")

    def _tidy(self, user: str) -> None:
        if not self._waiting[user]:
            del self._waiting[user]


def _become(turn: FairQueueEntry, state: Literal["running", "dropped"]) -> None:
    turn.state = state
    turn.wake()
