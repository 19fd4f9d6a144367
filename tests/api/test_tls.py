"""HTTPS by settings, and the sentences when its files are wrong."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from headrace.access.access import Access
from headrace.api.client import RemoteService
from headrace.api.resources.status import StatusRequest
from headrace.api.server import HttpServer
from headrace.api.tls import check_tls, trusting_context, unencrypted
from headrace.core.errors import BadSetting, Unavailable
from headrace.define.settings import HttpSettings

from .conftest import STATUS, Shop

FILES = Path(__file__).parents[1] / "run" / "tls"
CERT, KEY = str(FILES / "cert.pem"), str(FILES / "key.pem")


def test_requests_and_cookies_are_safe_over_https(shop: Shop, access: Access, token: str) -> None:
    server = HttpServer(shop, HttpSettings(port=0, tls_cert=CERT, tls_key=KEY), access)
    server.start()
    try:
        assert server.url.startswith("https://")
        with RemoteService(server.url, token, verify=trusting_context(CERT)) as remote:
            assert remote.ask(StatusRequest()) == STATUS
            opened = remote._http.post("/v1/session", json={"token": token})
            said = opened.headers["set-cookie"]
            # What a browser asks of the prefix: https, the whole host and no other.
            assert said.startswith(f"__Host-headrace_{httpx.URL(server.url).port}=")
            assert {"Secure", "Path=/", "HttpOnly", "SameSite=strict"} <= set(said.split("; "))
            assert "domain" not in said.lower()
            cookie = said.partition(";")[0]
            known = {"Authorization": "", "Cookie": cookie}
            assert remote._http.get("/v1/session", headers=known).status_code == 200
            plain = known | {"Cookie": cookie.removeprefix("__Host-")}
            assert remote._http.get("/v1/session", headers=plain).status_code == 401
            ended = remote._http.post("/v1/session/end", headers=known).headers["set-cookie"]
            assert "Secure" in ended
            assert "Max-Age=0" in ended
            assert opened.headers["strict-transport-security"] == "max-age=31536000"
            local = remote._http.get("/livez", headers={"Host": "localhost"}).headers
            assert "strict-transport-security" not in local
        with RemoteService(server.url, token) as remote, pytest.raises(Unavailable):
            remote.ask(StatusRequest())
        with pytest.raises(httpx.TransportError):
            httpx.get(server.url.replace("https", "http") + "/livez", trust_env=False)
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("cert", "key", "sentence"),
    [
        (CERT, "", "http.tls_key is missing"),
        ("", KEY, "http.tls_cert is missing"),
        ("none.pem", KEY, "the file in http.tls_cert does not exist: none.pem"),
        (KEY, KEY, "the certificate in http.tls_cert and the key in http.tls_key cannot be loaded"),
    ],
)
def test_what_is_wrong_is_one_sentence(cert: str, key: str, sentence: str) -> None:
    with pytest.raises(BadSetting) as raised:
        check_tls(HttpSettings(tls_cert=cert, tls_key=key))
    assert raised.value.message == sentence


@pytest.mark.parametrize(
    ("host", "cert", "warned"),
    [
        ("127.0.0.1", "", False), ("localhost", "", False), ("::1", "", False),
        ("0.0.0.0", "", True), ("shop.internal", "", True), ("0.0.0.0", CERT, False),
    ],
)  # fmt: skip
def test_a_network_without_tls_is_warned_of(host: str, cert: str, warned: bool) -> None:
    assert unencrypted(HttpSettings(host=host, tls_cert=cert)) == warned
