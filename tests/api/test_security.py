"""Other web sites are kept out."""

from __future__ import annotations

import socket

import httpx
import pytest
from starlette.datastructures import Headers

from headrace.access.access import Access
from headrace.api.security import OriginPolicy, same_origin
from headrace.api.server import HttpServer
from headrace.define.settings import HttpSettings

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
        f"https://127.0.0.1:{port}",
        f"HTTPS://127.0.0.1:{port}",
        f"http://127.0.0.1:{port + 1}",
        f"http://127.0.0.1:{port}/",
        f"http://127.0.0.1:{port}@evil.example",
        f"http://evil@127.0.0.1:{port}",
    ):
        response = client.post(EVENTS, content=b"{}", headers={"Origin": origin})
        assert (response.status_code, condition(response)) == (403, "Refused"), origin
    assert shop.logged() == []


def test_our_own_page_can(client: httpx.Client, shop: Shop) -> None:
    own = {"Origin": str(client.base_url).rstrip("/")}
    assert client.post(EVENTS, content=b"{}", headers=own).status_code == 200
    assert client.get("/livez", headers={"Origin": "http://evil.example"}).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site", "CROSS-SITE", "anything"])
def test_what_a_browser_says_of_another_site_is_refused(
    client: httpx.Client, shop: Shop, site: str
) -> None:
    own = {"Origin": str(client.base_url).rstrip("/")}
    for headers in ({}, own):
        said = headers | {"Sec-Fetch-Site": site}
        response = client.post(EVENTS, content=b"{}", headers=said)
        assert (response.status_code, condition(response)) == (403, "Refused")
        # A link that is followed shows the page; nothing else is for other sites to load.
        loaded = said | {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}
        assert client.get("/v1/status", headers=loaded).status_code == 403
        followed = said | {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
        assert client.get("/livez", headers=followed).status_code == 200
        framed = said | {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}
        assert client.get("/livez", headers=framed).status_code == 403
    assert shop.logged() == []


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_what_a_browser_says_of_our_own_page_is_let_through(
    client: httpx.Client, site: str
) -> None:
    said = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "cors"}
    assert client.post(EVENTS, content=b"{}", headers=said).status_code == 200
    assert client.get("/v1/status", headers=said).status_code == 200


def test_behind_a_proxy_that_ends_tls_the_browser_says_whose_page_it_is(
    client: httpx.Client,
) -> None:
    port = client.base_url.port
    proxied = {"Origin": f"https://127.0.0.1:{port}"}
    assert client.post(EVENTS, content=b"{}", headers=proxied).status_code == 403
    said = proxied | {"Sec-Fetch-Site": "same-origin"}
    assert client.post(EVENTS, content=b"{}", headers=said).status_code == 200
    other = said | {"Origin": f"https://127.0.0.1:{port + 1}"}
    assert client.post(EVENTS, content=b"{}", headers=other).status_code == 403


@pytest.mark.parametrize(
    ("origin", "scheme", "host"),
    [("https://shop.internal", "https", "shop.internal:443"),
     ("https://shop.internal:443", "https", "shop.internal"),
     ("http://Shop.Internal", "http", "shop.internal:80"),
     ("http://[::1]:8080", "http", "[::1]:8080")],
)  # fmt: skip
def test_the_port_that_is_not_said_is_that_of_the_scheme(
    origin: str, scheme: str, host: str
) -> None:
    assert same_origin(origin, scheme, host)
    assert not same_origin(origin, "https" if scheme == "http" else "http", host)


@pytest.mark.parametrize(
    ("version", "headers", "reason"),
    [("1.1", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", b"Content-Length"),
     ("1.1", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", b"Content-Length"),
     ("1.1", "content-length: 5\r\ntransfer-encoding: chunked\r\n", b"Content-Length"),
     ("1.1", "Content-Length: 5\r\nContent-Length: 0\r\n", b"Content-Length"),
     ("1.1", "Transfer-Encoding: chunked, identity\r\n", b"Transfer-Encoding"),
     ("1.1", "Transfer-Encoding : chunked\r\n", b"header"),
     ("1.1", "Transfer-Encoding: chunked\r\nHost: shop\r\n", b"more than one Host header"),
     ("1.0", "Transfer-Encoding: chunked\r\n", b"HTTP/1.0 has no Transfer-Encoding")],
)  # fmt: skip
def test_what_can_be_read_in_two_ways_is_refused_and_the_connection_closed(
    server: HttpServer, shop: Shop, version: str, headers: str, reason: bytes
) -> None:
    """Two readers of the stream would otherwise disagree where the next request begins."""
    address = httpx.URL(server.url)
    with socket.create_connection((address.host, address.port or 0), timeout=20) as sent:
        head = f"POST {EVENTS} HTTP/{version}\r\nHost: localhost\r\n{headers}\r\n"
        sent.sendall(head.encode() + b"0\r\n\r\nGET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answers = b"".join(iter(lambda: sent.recv(65536), b""))
    assert answers.startswith(b"HTTP/1.1 400 ")
    assert reason in answers
    assert answers.count(b"HTTP/1.1 ") == 1, "the rest is not read as a request"
    assert shop.logged() == []


def _assert_safe(headers: httpx.Headers, path: str) -> None:
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"] == (
        "default-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    )
    assert headers["referrer-policy"] == "same-origin"
    assert "microphone=()" in headers["permissions-policy"]
    assert "strict-transport-security" not in headers, "there is no TLS here"
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


def _refused(guard: OriginPolicy, host: str) -> bool:
    scope = {"type": "http", "method": "GET", "scheme": "http", "http_version": "1.1"}
    return guard.refusal(scope, Headers({"host": host})) is not None


def test_a_server_of_all_addresses_answers_addresses_and_its_own_name() -> None:
    guard = OriginPolicy("0.0.0.0")
    allowed = ["10.1.2.3:8080", "[fe80::1]", "localhost", socket.gethostname()]
    assert [host for host in allowed if _refused(guard, host)] == []
    assert _refused(guard, "evil.example")


def test_a_configured_name_is_answered() -> None:
    guard = OriginPolicy("Shop.internal")
    assert not _refused(guard, "shop.internal:8080")
    assert _refused(guard, "10.1.2.3")


def test_the_names_of_a_proxy_or_a_service_can_be_allowed() -> None:
    guard = OriginPolicy("127.0.0.1", ["Stats.example.com", "*.svc.cluster.local"])
    allowed = ["stats.example.com", "STATS.EXAMPLE.COM.:443", "shop.prod.svc.cluster.local:8080"]
    assert [host for host in allowed if _refused(guard, host)] == []
    others = ["example.com", "x.stats.example.com", "svc.cluster.local", "evilsvc.cluster.local"]
    assert [host for host in others if not _refused(guard, host)] == []


def test_a_server_answers_for_the_names_in_its_settings(access: Access) -> None:
    http = HttpSettings(port=0, allowed_hosts=("stats.example.com",))
    server = HttpServer(Shop(), http, access)
    server.start()
    page = {
        "Host": "stats.example.com",
        "Origin": "https://stats.example.com",
        "Sec-Fetch-Site": "same-origin",
    }
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        assert client.get("/livez", headers=page).status_code == 200
        # Not known who asks, but not refused as a page of another site.
        assert client.post("/v1/rules", headers=page).status_code == 401
        other = client.get("/livez", headers={"Host": "other.example.com"})
    server.stop()
    assert other.json()["hint"] == (
        "use localhost, or add the name to http.allowed_hosts in the settings."
    )


def test_the_url_is_one_that_the_guard_lets_in(server: HttpServer) -> None:
    assert httpx.get(server.url + "/livez", trust_env=False).status_code == 200
