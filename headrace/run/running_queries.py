"""The running queries, by the ids that their callers chose, so that they can be cancelled.

Ids are separate for each user: two users may choose the same id, and neither can cancel the query
of the other. tests/run/test_running_queries.py checks it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from headrace.core.cancellation import Cancellation
from headrace.core.errors import BadRequest


class RunningQueries:
    """A registry of running queries. An id is free again when its query has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queries: dict[tuple[str, str], Cancellation] = {}  # by user and id

    @contextmanager
    def registered(self, id: str | None, user: str) -> Iterator[Cancellation]:
        """Register a query for the time of a block; without an id it cannot be cancelled."""
        cancellation = Cancellation()
        if id is None:
            yield cancellation
            return
        with self._lock:
            if (user, id) in self._queries:
                raise BadRequest(
                    f"a query with the id '{id}' is already running", hint="choose another id."
                )
            self._queries[user, id] = cancellation
        try:
            yield cancellation
        finally:
            with self._lock:
                del self._queries[user, id]

    def stop(self, id: str, user: str | None) -> bool:
        """Cancel the query of this id, of one user or of all; False if there is none."""
        with self._lock:
            queries = self._queries.items()
            found = [one for (owner, name), one in queries if name == id and user in (None, owner)]
        for one in found:
            one.stop()
        return bool(found)
