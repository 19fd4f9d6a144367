"""Which rows of which views a commit has changed, so that a reader need not read all of them again.

Commits are numbered in the store. A commit of another process, or one that is long ago, is not
known here, and then everything may have changed. tests/serving/test_read_model.py checks it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

KEYS_MAX = 50_000  # of one view in one commit; more are taken for all
COMMITS_MAX = 1_024
Changed = dict[str, set[str] | None]  # version -> keys of rows; None: perhaps all
Follower = Callable[[Any], Callable[[], None]]  # of the transaction, which can be read


class Changes:
    """The changes of the newest commits of this process."""

    def __init__(self) -> None:
        self._commits: dict[int, Changed] = {}
        self._lock = threading.Lock()
        self.newest = 0  # the number of the newest commit
        # Called before each commit, if it is set; what it returns is called after it.
        self.follower: Follower | None = None
        self._told: tuple[Callable[[], None], ...] = ()  # called after each commit

    def subscribe(self, tell: Callable[[], None]) -> None:
        """Be called after each commit, by the writer: it must neither wait nor fail."""
        with self._lock:
            self._told += (tell,)

    def unsubscribe(self, tell: Callable[[], None]) -> None:
        with self._lock:
            self._told = tuple(one for one in self._told if one != tell)

    def committed(self, number: int) -> None:
        """The commit is there, and so is what was published with it."""
        self.newest = number
        for tell in self._told:
            tell()

    def add(self, number: int, changed: Changed) -> None:
        with self._lock:
            self._commits[number] = changed
            self._commits.pop(number - COMMITS_MAX, None)

    def remove(self, number: int) -> None:
        """The commit has failed."""
        with self._lock:
            self._commits.pop(number, None)

    def between(self, version: str, after: int, upto: int) -> set[str] | None:
        """The keys of a version that commits in (after, upto] have changed; None: perhaps all."""
        keys: set[str] = set()
        with self._lock:
            for number in range(after + 1, upto + 1):
                found = self._commits[number].get(version, ()) if number in self._commits else None
                if found is None:
                    return None
                keys.update(found)
        return keys
