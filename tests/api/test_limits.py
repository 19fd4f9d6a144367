"""One user is slowed down before the others notice."""

from __future__ import annotations

import httpx
import pytest

from headrace.access.access import Access
from headrace.api.limits import UserLimits
from headrace.api.server import HttpServer
from headrace.core.errors import Overloaded
from headrace.define.settings import AccessSettings, HttpSettings
from tests.access.users import bearer

from .conftest import EVENTS, Shop


class HeldTime:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_bytes_are_let_through_at_the_stated_rate() -> None:
    time = HeldTime()
    limits = UserLimits(AccessSettings(bytes_per_second_max=100), time)
    sent = 0
    for tenth in range(1_000):
        time.now = tenth / 10
        try:
            limits.take_bytes("ada", 70)
        except Overloaded:
            continue
        sent += 70
    assert sent == pytest.approx(100 * 100, rel=0.03)


def test_a_request_that_is_larger_than_the_rate_is_let_through_and_paid_back() -> None:
    time = HeldTime()
    limits = UserLimits(AccessSettings(bytes_per_second_max=100), time)
    limits.take_bytes("ada", 450)
    with pytest.raises(Overloaded) as raised:
        limits.take_bytes("ada", 1)
    assert raised.value.message == "ada sends more than 100 bytes a second"
    assert raised.value.retry_after_s == 4
    limits.take_bytes("bob", 1)
    time.now = 4.0
    limits.take_bytes("ada", 1)


def test_a_user_has_so_many_queries_at_a_time() -> None:
    limits = UserLimits(AccessSettings(queries_max=1))
    with limits.query("ada"):
        with (
            pytest.raises(Overloaded, match="ada already has 1 queries in progress"),
            limits.query("ada"),
        ):
            pass
        with limits.query("bob"):
            pass
    with limits.query("ada"):
        pass


def test_one_who_sends_too_fast_is_told_when_to_come_back(
    shop: Shop, access: Access, token: str
) -> None:
    slow = AccessSettings(bytes_per_second_max=1)
    server = HttpServer(shop, HttpSettings(port=0), access, slow)
    server.start()
    try:
        with httpx.Client(base_url=server.url, headers=bearer(token), trust_env=False) as client:
            assert client.post(EVENTS, content=b'{"ms": 1}').status_code == 200
            response = client.post(EVENTS, content=b"{}")
    finally:
        server.stop()
    assert response.status_code == 429
    assert int(response.headers["retry-after"]) in (7, 8)
    assert len(shop.logged()) == 1
