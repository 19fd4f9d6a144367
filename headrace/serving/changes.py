"""Which rows of which views each commit has changed, so that a reader reads only those again.

Commits are numbered in the store. Commits of other processes and old commits are not known here;
then all rows may have changed. tests/serving/test_read_model.py checks it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

KEYS_MAX = 50_000  # of one view in one commit; more count as all
COMMITS_MAX = 1_024
ChangedKeys = dict[str, set[str] | None]  # version -> keys of rows; None: perhaps all
CommitHook = Callable[[Any], Callable[[], None]]  # gets the transaction, for reading


class Changes:
    """The changes of the newest commits of this process."""

    def __init__(self) -> None:
        self._commits: dict[int, ChangedKeys] = {}
        self._lock = threading.Lock()
        self.newest = 0  # the number of the newest commit
        # Called before each commit, if it is set; the function it returns is called after it.
        self.commit_hook: CommitHook | None = None
        self._listeners: tuple[Callable[[], None], ...] = ()  # called after each commit

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call a function after each commit, in the writer's thread: it must neither wait nor
        fail.
        """
        with self._lock:
            self._listeners += (listener,)

    def unsubscribe(self, listener: Callable[[], None]) -> None:
        with self._lock:
            self._listeners = tuple(one for one in self._listeners if one != listener)

    def committed(self, number: int) -> None:
        """The commit is durable, and what the hook published is visible."""
        self.newest = number
        for listener in self._listeners:
            listener()

    def add(self, number: int, changed: ChangedKeys) -> None:
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
