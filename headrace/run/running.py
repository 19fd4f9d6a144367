"""The queries that run, by the ids that their callers chose, so that they can be stopped.

An id is its user's own: two users may choose the same, and neither stops the other's.

tests/run/test_running.py checks it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from headrace.core.cancellation import Cancellation
from headrace.core.errors import BadRequest


class Running:
    """Who runs. An id is free again when its query has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], Cancellation] = {}  # by user and id

    @contextmanager
    def entered(self, id: str | None, user: str) -> Iterator[Cancellation]:
        """Be known by an id for the time of a block; without one nobody can stop it."""
        stopping = Cancellation()
        if id is None:
            yield stopping
            return
        with self._lock:
            if (user, id) in self._known:
                raise BadRequest(
                    f"a query with the id '{id}' is running", hint="choose another one."
                )
            self._known[user, id] = stopping
        try:
            yield stopping
        finally:
            with self._lock:
                del self._known[user, id]

    def stop(self, id: str, user: str | None) -> bool:
        """Stop the user's query of this id, or those of all users; False if there is none."""
        with self._lock:
            known = self._known.items()
            found = [one for (of, name), one in known if name == id and user in (None, of)]
        for one in found:
            one.stop()
        return bool(found)
