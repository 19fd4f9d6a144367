"""What may block runs in a thread, of which there is a stated number; more is refused with
Overloaded before anything is done for it.

Queries are given their threads fairly by user: nobody has more than a share of them, so that one
user's slow queries keep nobody else's waiting. tests/api/test_threads.py has a user who tries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

from headrace.api.limits import overloaded
from headrace.core.turns import Turns

QUICK_THREADS, SLOW_THREADS, WAITING_MAX = 16, 8, 256
# Most of these wait for Spark, which costs nothing.
QUERY_THREADS, QUERY_SHARE = 32, 8
T = TypeVar("T")


class Threads:
    """Runs what blocks, a stated number at a time. For one event loop."""

    def __init__(self, most: int) -> None:
        self._limiter = CapacityLimiter(most)

    async def run(self, call: Callable[[], T]) -> T:
        if self._limiter.statistics().tasks_waiting >= WAITING_MAX:
            raise overloaded(WAITING_MAX)
        return await to_thread.run_sync(call, limiter=self._limiter, abandon_on_cancel=True)


class FairThreads:
    """Runs queries, each user's in turn. For one event loop."""

    def __init__(self) -> None:
        self._turns = Turns(QUERY_THREADS, QUERY_SHARE, WAITING_MAX)
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
