"""Thread pools of fixed size for blocking calls; calls above the limit are refused with Overloaded.

Queries, reads and new subscriptions share their threads fairly between users: no user has more than
a share of them, so that one user's slow calls do not delay those of others.
tests/api/test_threads.py checks it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

from headrace.api.limits import overloaded
from headrace.core.fair_queue import FairQueue

QUICK_THREADS, SLOW_THREADS, WAITING_MAX = 16, 8, 256
# Most of these wait for Spark, which costs nothing.
QUERY_THREADS, QUERY_SHARE = 32, 8
T = TypeVar("T")


class Threads:
    """Runs blocking calls, a fixed number at a time. For one event loop."""

    def __init__(self, most: int) -> None:
        self._limiter = CapacityLimiter(most)

    async def run(self, call: Callable[[], T]) -> T:
        if self._limiter.statistics().tasks_waiting >= WAITING_MAX:
            raise overloaded(WAITING_MAX)
        return await to_thread.run_sync(call, limiter=self._limiter, abandon_on_cancel=True)


class FairThreads:
    """Runs blocking calls, each user's in turn. For one event loop."""

    def __init__(self) -> None:
        self._turns = FairQueue(QUERY_THREADS, QUERY_SHARE, WAITING_MAX)
        self._threads = Threads(QUERY_THREADS)

    async def run(self, user: str, call: Callable[[], T]) -> T:
        woken = asyncio.Event()
        turn = self._turns.enter(user, woken.set)
        try:
            await woken.wait()
            if turn.state == "dropped":
                raise overloaded(WAITING_MAX)
            return await self._threads.run(call)
        finally:
            self._turns.leave(turn)
