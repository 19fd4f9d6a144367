"""A query that somebody else may stop, while it waits or while it runs.

`stop` may come at any time: before the work, which then does not begin; while it runs, when what
was handed in is called; or after it, when nothing happens. tests/core/test_stopping.py tries each.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from headrace.core.errors import Cancelled


class Stopping:
    """One query's.

    >>> stopping = Stopping()
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
        """Stop it, now or as soon as it begins."""
        with self._lock:
            self._stopped.set()
            if self._end is not None:
                self._end()

    def check(self) -> None:
        """Raise Cancelled if it was stopped."""
        if self.stopped:
            raise Cancelled("the query was stopped before it was answered")

    @contextmanager
    def by(self, end: Callable[[], None]) -> Iterator[None]:
        """While the block runs, `end` is what stops it."""
        with self._lock:
            self.check()
            self._end = end
        try:
            yield
        finally:
            with self._lock:
                self._end = None
