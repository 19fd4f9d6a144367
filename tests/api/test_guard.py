"""Other web sites are kept out."""

from __future__ import annotations

import socket

import httpx
import pytest
from starlette.datastructures import Headers
from starlette.responses import Response

from headrace.api.guard import Guard
from headrace.api.server import HttpServer

from .conftest import EVENTS, Shop, condition


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "localhost.", "127.0.0.1:80", "127.9.9.9", "[::1]:8080"]
)
def test_the_machine_itself_is_answered(client: httpx.Client, host: str) -> None:
    assert client.get("/livez", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "10.0.0.1", "0.0.0.0", "", "[",
     "::ffff:1", "localhost@evil.example"],
)  # fmt: skip
def test_another_host_is_refused(client: httpx.Client, host: str) -> None:
    for path in ("/livez", "/v1/status", "/nowhere"):
        response = client.get(path, headers={"Host": host})
        assert (response.status_code, condition(response)) == (403, "Refused")


def test_a_page_of_another_site_cannot_send_events(client: httpx.Client, shop: Shop) -> None:
    port = client.base_url.port
    for origin in (
        "http://evil.example",
        "null",
        "",
        f"http://localhost:{port}",
        "http://127.0.0.1",
    ):
        response = client.post(EVENTS, content=b"{}", headers={"Origin": origin})
        assert (response.status_code, condition(response)) == (403, "Refused"), origin
    assert shop.logged() == []


def test_our_own_page_can(client: httpx.Client, shop: Shop) -> None:
    own = {"Origin": str(client.base_url).rstrip("/")}
    assert client.post(EVENTS, content=b"{}", headers=own).status_code == 200
    assert client.get("/livez", headers={"Origin": "http://evil.example"}).status_code == 200


def _assert_safe(headers: httpx.Headers, path: str) -> None:
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"] == "default-src 'self'"
    assert headers["x-frame-options"] == "DENY"
    # The page's own is tested with the console; a refusal of it has none.
    if path != "/":
        assert headers.get("cache-control") == ("no-store" if path.startswith("/v1") else None)
    assert not [name for name in headers if name.startswith("access-control")]
    assert "server" not in headers
    assert headers["x-request-id"]


@pytest.mark.parametrize("path", ["/", "/livez", "/v1/status", "/v1/nothing", "/openapi.json"])
def test_every_answer_has_the_headers_of_safety(client: httpx.Client, path: str) -> None:
    _assert_safe(client.get(path).headers, path)
    _assert_safe(client.get(path, headers={"Host": "evil.example"}).headers, path)


def test_a_defect_has_the_headers_too(client: httpx.Client, shop: Shop) -> None:
    shop.fail = ZeroDivisionError()
    response = client.get("/v1/status")
    assert response.status_code == 500
    _assert_safe(response.headers, "/v1/status")


def _refused(guard: Guard, host: str) -> bool:
    return guard._refusal("GET", Headers({"host": host})) is not None


def test_a_server_of_all_addresses_answers_addresses_and_its_own_name() -> None:
    guard = Guard(Response(), "0.0.0.0")
    allowed = ["10.1.2.3:8080", "[fe80::1]", "localhost", socket.gethostname()]
    assert [host for host in allowed if _refused(guard, host)] == []
    assert _refused(guard, "evil.example")


def test_a_configured_name_is_answered() -> None:
    guard = Guard(Response(), "Shop.internal")
    assert not _refused(guard, "shop.internal:8080")
    assert _refused(guard, "10.1.2.3")


def test_the_url_is_one_that_the_guard_lets_in(server: HttpServer) -> None:
    assert httpx.get(server.url + "/livez", trust_env=False).status_code == 200
