"""The server starts, tells of a port in use, and stops."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

import httpx
import pytest

from headrace.access.access import Access
from headrace.api.server import HttpServer, bind
from headrace.core.errors import PortInUse, Unavailable
from headrace.define.settings import HttpSettings
from headrace.serving.answer import Answer
from tests.access.users import bearer

from .conftest import ANSWER, EVENTS, Shop


def test_a_port_in_use_is_told_with_what_to_do(
    server: HttpServer, shop: Shop, access: Access
) -> None:
    port = int(server.url.rpartition(":")[2])
    with pytest.raises(PortInUse) as raised:
        HttpServer(shop, HttpSettings(port=port), access).start()
    assert raised.value.message == f"port {port} is in use by another process"
    assert raised.value.hint is not None
    assert "--port" in raised.value.hint


@pytest.mark.parametrize(
    ("host", "port"), [("no.such.host.invalid", 0), ("203.0.113.1", 0), ("127.0.0.1", 70_000)]
)
def test_an_address_that_is_not_ours_is_told(host: str, port: int) -> None:
    with pytest.raises(Unavailable, match="cannot listen on"):
        bind(host, port).close()


def test_all_addresses_are_reached_by_loopback(shop: Shop, access: Access) -> None:
    server = HttpServer(shop, HttpSettings(host="0.0.0.0", port=0), access)
    server.start()
    try:
        assert server.url.startswith("http://127.0.0.1:")
        assert httpx.get(server.url + "/livez", trust_env=False).json() == {"ok": True}
    finally:
        server.stop()


def test_after_a_stop_nothing_listens_and_the_port_is_free(
    shop: Shop, access: Access, token: str
) -> None:
    server = HttpServer(shop, HttpSettings(port=0), access)
    server.start()
    port = int(server.url.rpartition(":")[2])
    httpx.post(server.url + EVENTS, headers=bearer(token), content=b"{}", trust_env=False)
    server.stop()
    server.stop()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
    again = HttpServer(shop, HttpSettings(port=port), access)
    again.start()
    again.stop()


def test_a_stop_lets_a_request_in_progress_end(
    shop: Shop, access: Access, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, answers = threading.Event(), list[httpx.Response]()

    def slow(
        text: str, limit: int | None = None, id: str | None = None, caller: Any = None
    ) -> Answer:
        entered.set()
        time.sleep(0.3)
        return ANSWER

    monkeypatch.setattr(shop, "sql", slow)
    server = HttpServer(shop, HttpSettings(port=0), access)
    server.start()

    def ask() -> None:
        question = {"sql": "SELECT 1"}
        answers.append(
            httpx.post(
                server.url + "/v1/sql", headers=bearer(token), json=question, trust_env=False
            )
        )

    asking = threading.Thread(target=ask)
    asking.start()
    assert entered.wait(5)
    server.stop()
    asking.join(5)
    assert [answer.status_code for answer in answers] == [200]


@pytest.mark.process
def test_importing_the_api_starts_no_spark() -> None:
    import subprocess
    import sys

    code = (
        "import sys, headrace.api.server, headrace.api.client; sys.exit('pyspark' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
