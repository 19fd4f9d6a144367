"""Futures of appends, combined without a thread for each.

A future is running from the start, so that a client that disconnects cannot cancel it: its records
are in the log in either case. tests/ingest/test_futures.py checks both functions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


def running_future() -> Future[T]:
    """A future that cannot be cancelled; the caller resolves it."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()
    return future


def failed_future(error: BaseException) -> Future[T]:
    """A future that has failed already."""
    future: Future[T] = running_future()
    future.set_exception(error)
    return future


def when_all_ended(
    futures: Sequence[Future[Any]], then: Callable[[BaseException | None], None]
) -> None:
    """Call `then` once, when all have ended, with the first failure in their order or None."""
    left = len(futures)
    if not left:
        then(None)
    lock = threading.Lock()

    def ended(_: Future[Any]) -> None:
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            then(next((error for f in futures if (error := f.exception())), None))

    for future in futures:
        future.add_done_callback(ended)
