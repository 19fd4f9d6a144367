"""A request on the short path is answered as the application would answer it."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing
from itertools import pairwise
from typing import Any

import httpx
import pytest
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from headrace.access.access import Access
from headrace.access.audit_log import AuditLogFilter
from headrace.api.direct_sends import DirectSend
from headrace.api.protocol import LimitedProtocol
from headrace.api.server import HttpServer
from headrace.core.errors import DiskFull
from headrace.core.meters import REGISTRY
from headrace.define.settings import HttpSettings
from headrace.ingest.intake import Receipt
from tests.access.users import TEST, bearer, token_of
from tests.ingest.conftest import wait_for

from .conftest import EVENT_BYTES_MAX, EVENTS, Shop

# The application reads an encoding, so it answers a request that says one.
BY_THE_APPLICATION = {"Content-Encoding": "identity"}
OWN = ("date", "x-request-id")
Direct = Callable[[], int]


@pytest.fixture
def direct(monkeypatch: pytest.MonkeyPatch) -> Direct:
    """How many requests were answered on the short path."""
    answered, answer = list[DirectSend](), LimitedProtocol.answer

    def noted(self: LimitedProtocol, send: DirectSend, response: bytes) -> None:
        answered.append(send)
        answer(self, send, response)

    monkeypatch.setattr(LimitedProtocol, "answer", noted)
    return lambda: len(answered)


@pytest.fixture
def warm(client: httpx.Client) -> httpx.Client:
    """A client whose token was authenticated just now."""
    assert client.get("/v1/status").status_code == 200
    return client


@pytest.fixture
def wire(warm: httpx.Client, server: HttpServer) -> Iterator[socket.socket]:
    at = httpx.URL(server.url)
    with closing(socket.create_connection((at.host, at.port or 0), 20)) as made:
        yield made


def _request(token: str, body: bytes, more: str = "", url: str = EVENTS) -> bytes:
    head = f"POST {url} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n{more}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def _answers(made: socket.socket, count: int) -> bytes:
    """What is received up to the end of so many receipts or errors, or of the connection."""
    data = b""
    while len(re.findall(rb'"(?:offsets|origin)":.*?\}', data)) < count:
        part = made.recv(65_536)
        if not part:
            break
        data += part
    return data


def _comparable(response: httpx.Response) -> tuple[int, list[tuple[str, str]], str]:
    """All of a response that does not belong to the one request."""
    lines = [(name, value) for name, value in response.headers.multi_items() if name not in OWN]
    return response.status_code, lines, re.sub(r'_offset":\d', '_offset":N', response.text)


@pytest.mark.parametrize(
    ("content", "media"),
    [
        (b'{"ms": 1}', None),
        (b'{"ms": 1}\n{"ms": 2}\n', "application/x-ndjson"),
        (b'[{"ms": 1}, {"ms": 2}]', "application/json; charset=utf-8"),
        (b"any\nbytes", "application/octet-stream"),
        (b"{oops", None),
        (b"[]", None),
        (b"x" * (EVENT_BYTES_MAX + 1), None),
    ],
    ids=["one", "lines", "array", "bytes", "no JSON", "nothing", "too long"],
)
def test_a_response_is_that_of_the_application(
    warm: httpx.Client, direct: Direct, content: bytes, media: str | None
) -> None:
    headers = {"Content-Type": media} if media else {}
    short = warm.post(EVENTS, content=content, headers=headers)
    assert direct() == 1
    long = warm.post(EVENTS, content=content, headers=headers | BY_THE_APPLICATION)
    assert direct() == 1
    assert _comparable(short) == _comparable(long)


@pytest.mark.parametrize("failure", [DiskFull("the disk is full"), ZeroDivisionError("secret")])
def test_a_failure_is_that_of_the_application(
    warm: httpx.Client, shop: Shop, direct: Direct, failure: Exception
) -> None:
    def failed(_: Future[Receipt]) -> Future[Receipt]:
        future: Future[Receipt] = Future()
        future.set_exception(failure)
        return future

    shop.during_submit = failed
    with capture_logs():
        short = warm.post(EVENTS, content=b"{}")
        long = warm.post(EVENTS, content=b"{}", headers=BY_THE_APPLICATION)
    assert direct() == 1
    assert short.status_code == long.status_code
    assert short.json()["message"] == long.json()["message"]
    assert "secret" not in short.text
    if short.status_code == 500:
        assert short.json()["detail"] == f"request {short.headers['x-request-id']}"


def test_a_response_of_many_partitions_is_compressed_as_by_the_application(
    warm: httpx.Client, shop: Shop, direct: Direct
) -> None:
    receipt: Future[Receipt] = Future()
    receipt.set_result(Receipt(99, offsets=tuple((n, 0, 9) for n in range(99))))
    shop.during_submit = lambda _: receipt
    for accepted in ("gzip", "identity"):
        headers = {"Accept-Encoding": accepted}
        short = warm.post(EVENTS, content=b"{}", headers=headers)
        long = warm.post(EVENTS, content=b"{}", headers=headers | BY_THE_APPLICATION)
        left = {"content-length", *OWN}  # two compressions may differ in their length
        alike = [
            sorted((n, v) for n, v in r.headers.items() if n not in left) for r in (short, long)
        ]
        assert alike[0] == alike[1]
        assert short.json() == long.json()
    assert direct() == 2


def _counters() -> list[float]:
    wanted = [
        ("headrace_http_requests_total", {"method": "POST", "status": "200"}),
        ("headrace_http_request_seconds_count", {}),
    ]
    route = {"route": "/v1/streams/{stream}/events"}
    allowed = {"user": "ann", "operation": "send", "decision": "allowed"}
    found = [REGISTRY.get_sample_value(name, labels | route) for name, labels in wanted]
    found += [REGISTRY.get_sample_value("headrace_requests_total", allowed)]
    found += [
        REGISTRY.get_sample_value(
            f"headrace_ingest_{unit}_total", {"stream": "clicks", "result": "accepted"}
        )
        for unit in ("requests", "events", "bytes")
    ]
    return [number or 0.0 for number in found]


def test_it_is_counted_and_logged_as_by_the_application(warm: httpx.Client, direct: Direct) -> None:
    numbers, lines = [_counters()], list[dict[str, Any]]()
    for headers in ({}, BY_THE_APPLICATION):
        with capture_logs(processors=[merge_contextvars]) as logs:
            response = warm.post(EVENTS, content=b'{"ms": 1}\n{"ms": 2}', headers=headers)
        [line] = [line for line in logs if line["event"] == "request answered"]
        assert line.pop("request_id") == response.headers["x-request-id"]
        line.pop("milliseconds")
        lines.append(dict(line))
        numbers.append(_counters())
    assert direct() == 1
    added = [[b - a for a, b in zip(*pair, strict=True)] for pair in pairwise(numbers)]
    assert added == [[1, 1, 1, 1, 2, 18]] * 2
    assert lines[0] == lines[1]


def test_a_revoked_token_is_refused_at_once_and_the_refusal_logged(
    server: HttpServer, access: Access, direct: Direct
) -> None:
    token = token_of(access, "sam", "send")
    with httpx.Client(base_url=server.url, headers=bearer(token), trust_env=False) as sam:
        assert [sam.post(EVENTS, content=b"{}").status_code for _ in range(2)] == [200, 200]
        assert direct() == 1
        access.remove_grant("sam", "send", "*", TEST)
        # The second time its token was authenticated just now.
        assert [sam.post(EVENTS, content=b"{}").status_code for _ in range(2)] == [403, 403]
        [entry] = access.audit_log(AuditLogFilter(user="sam", limit=1)).entries
        assert (entry.what, entry.object, entry.decision) == (
            "send_events", "stream:clicks", "refused",
        )  # fmt: skip
        access.remove_user("sam", TEST)
        assert sam.post(EVENTS, content=b"{}").status_code == 401
    assert direct() == 1


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Host": "evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Authorization": "Bearer hr_wrong"}, 401),
        ({"Content-Type": "image/png"}, 400),
    ],
    ids=str,
)
def test_what_the_application_refuses_is_left_to_it(
    warm: httpx.Client, shop: Shop, direct: Direct, headers: dict[str, str], status: int
) -> None:
    assert warm.post(EVENTS, content=b"{}").status_code == 200
    assert warm.post(EVENTS, content=b"{}", headers=headers).status_code == status
    assert warm.post(EVENTS, content=b"  ").status_code == 400
    assert warm.post("/v1/streams/nothing/events", content=b"{}").status_code == 404
    assert direct() == 1
    assert shop.logged() == [b"{}"]


def test_one_head_after_another_on_one_connection_is_read_anew(
    wire: socket.socket, token: str, direct: Direct
) -> None:
    said = b""
    for each in (token, "hr_wrong", token):
        wire.sendall(_request(each, b"{}"))
        said += _answers(wire, 1)
    assert re.findall(rb"HTTP/1.1 (\d+)", said) == [b"200", b"401", b"200"]
    assert direct() == 2


def test_a_body_may_come_in_parts_and_be_larger_than_what_is_read_ahead(
    wire: socket.socket, token: str, shop: Shop, direct: Direct
) -> None:
    body = b'{"user":"a"}\n' * 8_000
    sent = _request(token, body)
    for start in range(0, len(sent), 10_007):
        wire.sendall(sent[start : start + 10_007])
    assert b'"accepted":8000,' in _answers(wire, 1)
    assert direct() == 1
    assert len(shop.logged()) == 8_000


def test_a_request_that_was_sent_early_waits_for_the_one_before(
    wire: socket.socket, token: str, shop: Shop, direct: Direct
) -> None:
    held = list[tuple[Future[Receipt], Future[Receipt]]]()

    def hold(future: Future[Receipt]) -> Future[Receipt]:
        held.append((future, Future()))
        return held[-1][1]

    shop.during_submit = hold
    wire.sendall(_request(token, b"{}") + _request(token, b"{}\n{}") + _request(token, b"[]"))
    said = b""
    for number in (1, 2, 3):
        wait_for(lambda number=number: len(held) >= number)
        assert len(held) == number
        accepted, answer = held[-1]
        answer.set_result(accepted.result())
        said += _answers(wire, 1)
    assert re.findall(rb'"accepted":(\d)', said) == [b"1", b"2", b"0"]
    assert direct() == 1


def test_a_connection_is_closed_after_its_last_request(
    wire: socket.socket, token: str, direct: Direct, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle = list[LimitedProtocol]()
    monkeypatch.setattr(
        LimitedProtocol,
        "timeout_keep_alive_handler",
        lambda self: (idle.append(self), self.transport.close()),
    )
    wire.sendall(_request(token, b"{}", "Connection: close\r\n") + _request(token, b"{}"))
    said = b"".join(iter(lambda: wire.recv(65_536), b""))
    assert b"\r\nconnection: close\r\n" in said
    assert said.count(b"HTTP/1.1 200 ") == said.count(b"HTTP/1.1 ") == 1
    assert direct() == 1
    assert idle == [], "it was closed with the response, not because it was idle"


def test_what_can_be_read_in_two_ways_is_refused_after_a_short_path_too(
    wire: socket.socket, token: str, shop: Shop
) -> None:
    wire.sendall(_request(token, b"{}"))
    assert b" 200 OK" in _answers(wire, 1)
    wire.sendall(_request(token, b"0\r\n\r\n", "Transfer-Encoding: chunked\r\n"))
    said = b"".join(iter(lambda: wire.recv(65_536), b""))
    assert said.startswith(b"HTTP/1.1 400 ")
    assert len(shop.logged()) == 1


def test_a_client_that_leaves_within_its_body_sends_nothing_and_occupies_nothing(
    shop: Shop, access: Access, token: str
) -> None:
    server = HttpServer(shop, HttpSettings(port=0, waiting_max=2), access)
    server.start()
    labels = {"method": "POST", "route": "/v1/streams/{stream}/events", "status": "500"}
    before = REGISTRY.get_sample_value("headrace_http_requests_total", labels) or 0.0
    at = httpx.URL(server.url)
    try:
        with httpx.Client(base_url=server.url, headers=bearer(token), trust_env=False) as client:
            assert client.post(EVENTS, content=b'{"ms":1}').status_code == 200
            for _ in range(4):
                with closing(socket.create_connection((at.host, at.port or 0), 20)) as made:
                    made.sendall(_request(token, b"{}")[:-1])
                # While these are answered, the server learns that the other has gone.
                answers = [client.post(EVENTS, content=b'{"ms":2}') for _ in range(3)]
                assert [answer.status_code for answer in answers] == [200] * 3
    finally:
        server.stop()
    assert REGISTRY.get_sample_value("headrace_http_requests_total", labels) == before + 4
    assert b"{" not in shop.logged()
