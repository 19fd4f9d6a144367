"""Requests are passed on to a real server and back, as they come and as they are."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import msgspec
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headrace.access.caller import Caller, Permission
from headrace.access.delegation import (
    DELEGATED_SCHEME,
    KEY_BYTES,
    SIGNATURE_HEADER,
    read_delegated_token,
    request_line,
    response_signature,
)
from headrace.access.operation import Operation
from headrace.api.app import secured_app
from headrace.api.authentication import request_target
from headrace.api.server import AppServer
from headrace.core.errors import NotFound, Unavailable
from headrace.core.problems import Problem
from headrace.core.time import SECOND, now_us
from headrace.define.settings import HttpSettings
from headrace.server import proxy as proxy_module
from headrace.server.proxy import JobProxy, ProxyRequest

SEEN: list[dict[str, str]] = []
BROKEN_OFF: list[bool] = []
HTTP = HttpSettings(port=0, body_timeout_us=2 * SECOND)
KEY = b"k" * KEY_BYTES
ADA = Caller("ada", "t1", "shop", (Permission.of("read", "job:shop"),))


class Job(BaseHTTPRequestHandler):
    """A job: each part of a stream is sent when the reader has the one before."""

    protocol_version = "HTTP/1.1"
    go = threading.Semaphore(0)
    status = 200, b""

    def end_headers(self) -> None:
        """As a job answers; one that was put in its place has no key."""
        text = self.headers.get("Authorization", "").partition(" ")[2]
        key = b"x" * KEY_BYTES if self.path == "/impostor" else KEY
        if self.path != "/silent":
            self.send_header(SIGNATURE_HEADER, response_signature(text, key))
        super().end_headers()

    def do_GET(self) -> None:
        SEEN.append({name.lower(): value for name, value in self.headers.items()})
        if self.path.startswith("/stream"):
            self._stream()
        elif self.path == "/broken":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"the beginning")
            self.close_connection = True
        elif self.path == "/v1/status":
            code, data = self.status
            self.send_response(code)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        elif self.path == "/gone":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        else:
            self._answer(gzip.compress(self.path.encode()), {"Content-Encoding": "gzip"})

    def _stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        go = Job.go  # of this test: the next one has its own
        for number in range(3):
            go.acquire()
            part = b"data: %d\n\n" % number
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        self.wfile.write(b"0\r\n\r\n")

    def do_POST(self) -> None:
        SEEN.append({name.lower(): value for name, value in self.headers.items()})
        if self.path == "/gone":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        if "Content-Length" in self.headers:
            data = self.rfile.read(int(self.headers["Content-Length"]))
        else:
            data = b"".join(self._chunks())
        self._answer(json.dumps({"bytes": len(data)}).encode(), {})

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def _answer(self, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(201)
        for name, value in {**headers, "X-Own": "kept", "Keep-Alive": "timeout=5"}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def job() -> Iterator[str]:
    SEEN.clear()
    BROKEN_OFF.clear()
    # What a test before has released and nobody has taken would let this one go too early.
    Job.go = threading.Semaphore(0)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Job)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def line() -> Iterator[JobProxy]:
    line = JobProxy()
    yield line
    line.close()


@pytest.fixture
def client(job: str, line: JobProxy) -> Iterator[httpx.Client]:
    """One who asks a server that passes everything on to the job."""

    async def forward(request: Request) -> Response:
        ask = ProxyRequest(request_target(request), ADA, lambda: not BROKEN_OFF)
        name = "bank" if request.url.path.startswith("/other") else "shop"
        answer = await line.forward(name, job, KEY, request, ask)
        if answer is None:
            raise NotFound("it was not reached")
        return answer

    routes = [Route("/{path:path}", forward, methods=["GET", "POST"])]
    server = AppServer(secured_app(routes, HTTP, _closing(line)), HTTP)
    server.start()
    with httpx.Client(base_url=server.url, trust_env=False, timeout=60) as client:
        yield client
    server.stop()


def _closing(line: JobProxy) -> Any:
    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def lifespan(app: object) -> Any:
        yield
        await line.aclose()

    return lifespan


def test_an_answer_is_passed_on_byte_for_byte_with_its_headers(client: httpx.Client) -> None:
    answer = client.get("/a b/ü?x=%2F&y=1")
    assert answer.status_code == 201
    assert answer.headers["x-own"] == "kept"
    assert answer.headers["content-encoding"] == "gzip"
    assert "keep-alive" not in answer.headers
    assert answer.text == "/a%20b/%C3%BC?x=%2F&y=1"
    assert answer.headers["x-frame-options"] == "DENY"
    assert len(answer.headers.get_list("date")) == 1


@pytest.mark.parametrize("path", ["/a%2Fb", "/a%3Fb", "/a%23b?c=%26", "/a%25b", "/a//b", "/~a;b=1"])
def test_a_path_is_passed_on_as_it_was_sent(client: httpx.Client, path: str) -> None:
    asked = client.build_request("GET", client.base_url.copy_with(raw_path=path.encode()))
    assert client.send(asked).text == path


def test_the_job_is_told_who_asks_and_not_what_the_caller_says_of_it(
    client: httpx.Client, job: str
) -> None:
    own = {"Authorization": "Bearer hr_secret", "Cookie": "headrace_1=hs_secret"}
    client.get("/x?y=1", headers={**own, "X-Free": "1", "TE": "trailers"})
    scheme, _, text = SEEN[0]["authorization"].partition(" ")
    assert scheme == DELEGATED_SCHEME
    assert read_delegated_token(text, request_line("GET", b"/x?y=1"), KEY, now_us()) == ADA
    assert "cookie" not in SEEN[0]
    assert SEEN[0]["x-free"] == "1"
    assert SEEN[0]["host"] == job.removeprefix("http://")
    assert "te" not in SEEN[0]


@pytest.mark.parametrize("path", ["/impostor", "/silent"])
def test_what_another_process_answers_is_not_passed_on(client: httpx.Client, path: str) -> None:
    for said in (client.get(path), client.post(path, content=b"{}")):
        assert (said.status_code, said.json()["message"]) == (404, "it was not reached")
    assert SIGNATURE_HEADER not in client.get("/x").headers, "it is for the server alone"


def test_an_answer_is_compressed_by_the_job_for_a_caller_who_accepts_it_and_by_nobody_else(
    client: httpx.Client,
) -> None:
    client.get("/x", headers={"Accept-Encoding": "gzip"})
    bare = client.build_request("GET", "/x")
    del bare.headers["accept-encoding"]
    client.send(bare)
    assert [told["accept-encoding"] for told in SEEN] == ["gzip", "identity"]
    small = client.post("/x", content=b"12345")
    assert "content-encoding" not in small.headers
    assert small.headers["content-length"] == "12"


def test_a_body_is_passed_on_with_its_length_or_in_parts(client: httpx.Client) -> None:
    assert client.post("/x", content=b"z" * 3_000_000).json() == {"bytes": 3_000_000}
    assert SEEN[0]["content-length"] == "3000000"
    parts = (b"y" * 100_000 for _ in range(30))
    assert client.post("/x", content=parts).json() == {"bytes": 3_000_000}
    assert SEEN[1]["transfer-encoding"] == "chunked"


def test_a_body_that_does_not_come_is_not_waited_for(client: httpx.Client) -> None:
    with socket.create_connection((client.base_url.host, client.base_url.port or 0)) as caller:
        caller.sendall(b"POST /x HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{")
        caller.settimeout(20)
        said = caller.recv(65_536)
        while b"}" not in said:
            said += caller.recv(65_536)
    assert said.startswith(b"HTTP/1.1 408 ")
    assert b"the request's body was not received within" in said


def test_a_job_that_takes_no_more_is_not_waited_for_and_no_other_job_waits(
    client: httpx.Client, line: JobProxy, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy_module, "_CONNECTIONS", httpx.Limits(max_connections=1))
    monkeypatch.setattr(proxy_module, "_WAIT_S_MAX", 0.2)
    with client.stream("GET", "/stream"):
        said = client.get("/x")
        assert said.status_code == 429
        assert said.json()["message"] == ("job 'shop' has too many requests in progress")
        assert client.get("/other/x").text == "/other/x"
        Job.go.release(3)


def test_a_header_may_have_any_bytes(client: httpx.Client) -> None:
    assert client.get("/x", headers=[(b"X-Source", b"Z\xc3\xbcrich")]).status_code == 201
    assert SEEN[0]["x-source"].encode("latin-1").decode() == "Z\u00fcrich"


def test_events_come_through_one_by_one_and_not_at_the_end(client: httpx.Client) -> None:
    with client.stream("GET", "/stream") as answer:
        lines = answer.iter_lines()
        for number in range(3):
            Job.go.release()
            assert next(line for line in lines if line) == f"data: {number}"


def test_events_end_when_the_caller_may_not_hear_them_any_more(client: httpx.Client) -> None:
    with client.stream("GET", "/stream") as answer:
        lines = answer.iter_lines()
        Job.go.release()
        assert next(line for line in lines if line) == "data: 0"
        BROKEN_OFF.append(True)
        Job.go.release(2)
        assert not [line for line in lines if line]


def test_an_answer_that_breaks_off_breaks_off_for_the_caller_too(client: httpx.Client) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        client.get("/broken")


def test_a_question_without_an_answer_can_be_asked_elsewhere_and_a_change_is_told_as_unsure(
    client: httpx.Client,
) -> None:
    assert client.get("/gone").json()["message"] == "it was not reached"
    said = client.post("/gone", content=b"{}")
    assert said.status_code == 503
    assert said.json()["message"] == "job 'shop' closed the connection before it responded"
    assert said.json()["detail"] == "the request may have been executed."


def test_a_heart_is_heard_where_something_answers(line: JobProxy, job: str) -> None:
    assert line.alive(job)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}"
        assert not line.alive(nobody)
        with pytest.raises(Unavailable, match="it did not respond"):
            line.health("shop", nobody, KEY)


def test_the_health_of_a_job_is_that_of_its_own_status(
    line: JobProxy, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = Problem("speed", "clicks", "waiting", "events wait", "warn")
    said = {"name": "shop", "state": "running", "reason": "", "problems": [late], "streams": []}
    monkeypatch.setattr(Job, "status", (200, msgspec.json.encode(said)))
    found = line.health("shop", job, KEY)
    assert (found.state, found.problems, found.explanation) == ("running", [late], "events wait")
    token = SEEN[-1]["authorization"].removeprefix(f"{DELEGATED_SCHEME} ")
    caller = read_delegated_token(token, "GET /v1/status", KEY, now_us())
    assert caller.allows(Operation.READ, caller.whole_job)
    assert not caller.allows(Operation.DEFINE, caller.whole_job)


@pytest.mark.parametrize(
    ("status", "key", "said"),
    [
        ((503, msgspec.json.encode(Unavailable("the store is away").as_dict())), KEY, "the store"),
        ((500, b"no JSON"), KEY, "it responded with status 500"),
        ((200, b"{}"), KEY, "the response is not a status"),
        ((200, b'{"state": "running"}'), b"x" * KEY_BYTES, "it did not respond"),
    ],
)
def test_a_job_that_does_not_say_how_it_is_is_not_taken_to_be_well(
    line: JobProxy,
    job: str,
    monkeypatch: pytest.MonkeyPatch,
    status: tuple[int, bytes],
    key: bytes,
    said: str,
) -> None:
    monkeypatch.setattr(Job, "status", status)
    with pytest.raises(Unavailable, match=said):
        line.health("shop", job, key)
