"""Turns for what only a few can do at a time, fair to users: who asks much waits for oneself.

A free place goes to the user who has the fewest, and among those to the one who has waited longest
since their last turn. Nobody has more than a share of the places, so that one user's slow work
never takes all. Waiting is bounded: when too many wait, the newest of whoever has most waiting is
dropped, and not the one who asked last. tests/core/test_turns.py checks each.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(eq=False, slots=True)
class Turn:
    """One user's place in the queue, or at work; `wake` is called when its state has changed."""

    user: str
    wake: Callable[[], None]
    state: Literal["waiting", "running", "dropped", "left"] = "waiting"


class Turns:
    """`most` at a time, `share` of them for one user, and `waiting_max` that wait.

    >>> turns = Turns(most=2, share=1, waiting_max=8)
    >>> [turns.enter(user, lambda: None).state for user in ("ada", "ada", "bob")]
    ['running', 'waiting', 'running']
    """

    def __init__(self, most: int, share: int, waiting_max: int) -> None:
        self._most, self._share, self._waiting_max = most, share, waiting_max
        self._running = Counter[str]()
        self._waiting: dict[str, deque[Turn]] = {}  # by user, the one who waits longest first
        self._lock = threading.Lock()

    @property
    def running(self) -> int:
        return self._running.total()

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    def enter(self, user: str, wake: Callable[[], None]) -> Turn:
        """Run, or wait; leave in either case."""
        turn = Turn(user, wake)
        with self._lock:
            self._waiting.setdefault(user, deque()).append(turn)
            self._serve()
            if self.waiting > self._waiting_max:
                self._drop(user)
        return turn

    def leave(self, turn: Turn) -> None:
        """Make room for the next, or stop waiting."""
        with self._lock:
            if turn.state == "running":
                self._running[turn.user] -= 1
                self._running += Counter()  # without users who have nothing
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


def _become(turn: Turn, state: Literal["running", "dropped"]) -> None:
    turn.state = state
    turn.wake()
