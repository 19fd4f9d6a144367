"""The slow queries and reads of one user keep nobody else waiting."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from headrace.access.access import Access
from headrace.api import threads
from headrace.api.server import HttpServer
from headrace.api.threads import QUERY_SHARE, QUERY_THREADS, FairThreads
from headrace.core.errors import Overloaded
from tests.access.users import bearer, token_of
from tests.run.waiting import wait

from .conftest import Shop


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


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("ask", "/v1/views/{}?limit=1"),
        ("ask", "/v1/views/{}/about"),
        ("subscribe", "/v1/subscribe?sql=SUBSCRIBE TO {}"),
        ("live", "/v1/live?topics=view:{}"),
    ],
)
def test_slow_reads_of_one_user_delay_neither_others_nor_the_status(
    method: str,
    path: str,
    shop: Shop,
    server: HttpServer,
    access: Access,
    client: httpx.Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go, answer, entered = threading.Event(), getattr(shop, method), list[Any]()

    def slow(*asked: Any) -> Any:
        if "slow" in str(asked):
            entered.append(asked)
            go.wait(30)
        return answer(*asked)

    monkeypatch.setattr(shop, method, slow)
    headers = bearer(token_of(access, f"ada{time.monotonic_ns()}", "viewer"))
    with (
        httpx.Client(base_url=server.url, headers=headers, trust_env=False, timeout=30) as ada,
        ThreadPoolExecutor(QUERY_THREADS) as threads,
    ):
        try:
            for _ in range(QUERY_THREADS):
                threads.submit(ada.get, path.format("slow"))
            wait(lambda: len(entered) >= QUERY_SHARE, seconds=10)
            for other in ("/readyz", "/v1/status", "/v1/session", path.format("visitors")):
                assert client.get(other, timeout=5).status_code in {200, 404}
        finally:
            go.set()
