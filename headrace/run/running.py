"""The queries that run, by the ids that their callers chose, so that they can be stopped.

tests/run/test_running.py checks it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from headrace.core.errors import BadRequest
from headrace.core.stopping import Stopping


class Running:
    """Who runs. An id is free again when its query has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, Stopping] = {}

    @contextmanager
    def entered(self, id: str | None) -> Iterator[Stopping]:
        """Be known by an id for the time of a block; without one nobody can stop it."""
        stopping = Stopping()
        if id is None:
            yield stopping
            return
        with self._lock:
            if id in self._known:
                raise BadRequest(
                    f"a query with the id '{id}' is running", hint="choose another one."
                )
            self._known[id] = stopping
        try:
            yield stopping
        finally:
            with self._lock:
                del self._known[id]

    def stop(self, id: str) -> bool:
        """Stop the query of this id; False if there is none."""
        with self._lock:
            found = self._known.get(id)
        if found is None:
            return False
        found.stop()
        return True
