"""Cancels a query from another thread, while the query waits or runs.

`stop` may be called at any time: before the query starts, which then does not start; while it runs,
when the function that `by` was given is called; or after its end, when nothing happens.
tests/core/test_cancellation.py tries each.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from headrace.core.errors import Cancelled


class Cancellation:
    """The cancellation of one query.

    >>> stopping = Cancellation()
    >>> stopping.stop()
    >>> stopping.stopped
    True
    """

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._end: Callable[[], None] | None = None

    @property
    def stopped(self) -> bool:
        return self._stopped.is_set()

    def stop(self) -> None:
        """Stop the query, now or as soon as it starts."""
        with self._lock:
            self._stopped.set()
            if self._end is not None:
                self._end()

    def check(self) -> None:
        """Raise Cancelled if the query was stopped."""
        if self.stopped:
            raise Cancelled("the query was cancelled before it completed")

    @contextmanager
    def by(self, end: Callable[[], None]) -> Iterator[None]:
        """While the block runs, `stop` calls `end`."""
        with self._lock:
            self.check()
            self._end = end
        try:
            yield
        finally:
            with self._lock:
                self._end = None
