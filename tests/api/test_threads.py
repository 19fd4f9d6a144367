"""The slow queries of one user keep nobody else waiting."""

from __future__ import annotations

import asyncio
import threading

import pytest

from headrace.api import threads
from headrace.api.threads import QUERY_SHARE, QUERY_THREADS, FairThreads
from headrace.core.errors import Overloaded


def test_one_user_never_has_all_threads() -> None:
    async def story() -> str:
        fair, go = FairThreads(), threading.Event()
        slow = [asyncio.create_task(fair.run("ada", go.wait)) for _ in range(QUERY_THREADS)]
        try:
            return await asyncio.wait_for(fair.run("bob", lambda: "answered"), 30)
        finally:
            go.set()
            await asyncio.gather(*slow)

    assert asyncio.run(story()) == "answered"
    assert QUERY_SHARE < QUERY_THREADS


def test_whoever_asks_most_is_refused_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "WAITING_MAX", 3)

    async def story() -> list[object]:
        fair, go = FairThreads(), threading.Event()
        many = QUERY_SHARE + 5
        slow = [asyncio.create_task(fair.run("ada", go.wait)) for _ in range(many)]
        await asyncio.sleep(0)
        go.set()
        return await asyncio.gather(*slow, return_exceptions=True)

    said = asyncio.run(story())
    assert [type(one) for one in said].count(Overloaded) == 2
    assert said.count(True) == len(said) - 2
