"""Those who are not known cannot keep others out: connections, and the time for a request."""

from __future__ import annotations

import resource
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest

from headrace.access.access import Access
from headrace.api.connections import AcceptedSocket, Connections, connections_max
from headrace.api.protocol import HEAD_BYTES_MAX
from headrace.api.server import HttpServer
from headrace.core.time import MILLISECOND, SECOND
from headrace.define.settings import HttpSettings
from headrace.ingest.intake import Receipt

from .conftest import EVENTS, Shop
from .test_tls import CERT, KEY

HALF = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n"
Serve = Callable[..., HttpServer]


@pytest.fixture
def serve(shop: Shop, access: Access) -> Iterator[Serve]:
    started = list[HttpServer]()

    def start(**http: object) -> HttpServer:
        server = HttpServer(shop, HttpSettings(**({"port": 0} | http)), access)  # type: ignore[arg-type]
        started.append(server)
        server.start()
        return server

    yield start
    for server in started:
        server.stop()


def connected(url: str, source: str = "127.0.0.1", sent: bytes = b"") -> socket.socket:
    at = httpx.URL(url)
    made = socket.create_connection((at.host, at.port or 0), 20, (source, 0))
    made.sendall(sent)
    return made


def answered(made: socket.socket) -> bytes:
    """All that is said until the other side closes."""
    parts = list[bytes]()
    try:
        while part := made.recv(65_536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def ended(made: socket.socket) -> bool:
    """Whether the other side has closed it."""
    made.setblocking(False)
    try:
        return made.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def alive(url: str, source: str = "127.0.0.1") -> bool:
    with closing(connected(url, source, HALF + b"Connection: close\r\n\r\n")) as made:
        return answered(made).startswith(b"HTTP/1.1 200 ")


@pytest.mark.process
def test_half_open_requests_stop_nobody_where_few_files_may_be_open(tmp_path: Path) -> None:
    files, many = 256, 1_100
    program = Path(__file__).with_name("half_open.py")
    server = subprocess.Popen(
        [sys.executable, str(program), str(tmp_path / "access.db"), str(files)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    with server, ExitStack() as held:
        held.callback(server.kill)
        url = server.stdout.readline().strip()
        for _ in range(many):
            held.enter_context(closing(connected(url, sent=HALF)))
        assert alive(url)
        assert alive(url, "127.0.0.2")


def test_the_oldest_of_those_who_are_not_known_gives_way(serve: Serve) -> None:
    url = serve(connections_max=8).url
    with ExitStack() as held:
        made = [held.enter_context(closing(connected(url, sent=HALF))) for _ in range(8)]
        assert alive(url)
        _until(lambda: ended(made[0]))
        assert [one for one in made[2:] if ended(one)] == []


def test_one_address_has_room_of_its_own(serve: Serve) -> None:
    url = serve(connections_max=8, connections_per_address_max=3).url
    with ExitStack() as held:
        others = [held.enter_context(closing(connected(url, "127.0.0.2", HALF))) for _ in range(3)]
        made = [held.enter_context(closing(connected(url, "127.0.0.3", HALF))) for _ in range(5)]
        _until(lambda: ended(made[1]))
        assert [ended(one) for one in made] == [True, True, False, False, False]
        assert [one for one in others if ended(one)] == []


def test_addresses_of_one_ipv6_network_count_as_one() -> None:
    connections = Connections(most=8, per_address=2)
    peers = [("2001:db8::1", 1), ("2001:db9::1", 2), ("2001:db8::2", 3), ("2001:db8::3%eth0", 4)]
    with ExitStack() as held:
        for peer in peers:
            assert connections.admit(held.enter_context(closing(AcceptedSocket())), peer)
        assert [connections.of(peer) is not None for peer in peers] == [False, True, True, True]


def test_who_is_known_stays_and_who_comes_after_is_told(serve: Serve, token: str) -> None:
    url = serve(connections_max=3, connections_per_address_max=3).url
    head = f"POST {EVENTS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
    waiting = f"{head}Content-Length: 9\r\nExpect: 100-continue\r\n\r\n".encode()
    with ExitStack() as held:
        for _ in range(3):
            made = held.enter_context(closing(connected(url, sent=waiting)))
            assert made.recv(65_536).startswith(b"HTTP/1.1 100 "), "it is let in"
        with closing(connected(url, sent=HALF + b"\r\n")) as refused:
            said = answered(refused)
        assert said.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 1\r\n" in said
        assert b"the server has reached its connection limit" in said


def test_a_head_that_does_not_come_is_given_up(serve: Serve) -> None:
    url = serve(header_timeout_us=200 * MILLISECOND).url
    with closing(connected(url, sent=HALF)) as half, closing(connected(url)) as silent:
        said = answered(half)
        assert said.startswith(b"HTTP/1.1 408 ")
        assert b"the request's head was not received within 0.2 seconds" in said
        assert answered(silent) == b"", "there is no request that could be answered"


def test_a_head_that_drips_is_given_up_too_and_so_is_the_next_one(serve: Serve) -> None:
    url = serve(header_timeout_us=300 * MILLISECOND).url
    with closing(connected(url, sent=HALF + b"\r\n")) as made:
        first = b""
        while not first.endswith(b"}"):
            first += made.recv(65_536)
        made.sendall(HALF)
        until, said = time.monotonic() + 20, b""
        made.settimeout(0.05)
        while not said and time.monotonic() < until:
            try:
                made.sendall(b"X: 1\r\n")
                said = made.recv(65_536)
            except TimeoutError:
                continue
    assert said.startswith(b"HTTP/1.1 408 ")


def test_a_head_without_end_is_refused(serve: Serve) -> None:
    with closing(connected(serve().url, sent=HALF + b"X: ")) as made:
        made.sendall(b"x" * HEAD_BYTES_MAX)
        said = answered(made)
    assert said.startswith(b"HTTP/1.1 400 ")
    assert b"the request's head has more than 65,536 bytes" in said


def test_what_is_not_http_is_told_so(serve: Serve) -> None:
    with closing(connected(serve().url, sent=b"\x16\x03\x01 hello\r\n\r\n")) as made:
        said = answered(made)
    assert said.startswith(b"HTTP/1.1 400 ")
    assert b"the request is not valid HTTP/1.1" in said


def test_a_request_that_was_sent_early_waits_for_its_time(
    serve: Serve, shop: Shop, token: str
) -> None:
    """Its time begins when the one before it is answered, which is answered whole."""
    url = serve(header_timeout_us=200 * MILLISECOND).url
    accepted, answer = list[Future[Receipt]](), Future[Receipt]()
    shop.during_submit = lambda future: (accepted.append(future), answer)[1]
    head = f"POST {EVENTS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
    sent = f"{head}Content-Length: 2\r\n\r\n{{}}".encode() + HALF
    with closing(connected(url, sent=sent)) as made:
        time.sleep(0.5)  # longer than a head may take
        answer.set_result(accepted[0].result(20))
        said = answered(made)
    assert said.startswith(b"HTTP/1.1 200 ")
    assert said.count(b"HTTP/1.1 408 ") == 1


@pytest.mark.parametrize("path", ["/v1/session", EVENTS])
def test_a_body_that_does_not_come_is_given_up(serve: Serve, token: str, path: str) -> None:
    url = serve(body_timeout_us=200 * MILLISECOND).url
    authenticated = f"Authorization: Bearer {token}\r\n" if path == EVENTS else ""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{authenticated}Content-Length: 9\r\n\r\n{{"
    with closing(connected(url, sent=head.encode())) as made:
        said = answered(made)
    assert said.startswith(b"HTTP/1.1 408 ")
    assert b'"condition":"TooSlow"' in said
    assert b"the request's body was not received within 0.2 seconds" in said


def test_a_body_that_nobody_reads_does_not_keep_the_connection(serve: Serve) -> None:
    url = serve(body_timeout_us=200 * MILLISECOND).url
    head = f"POST {EVENTS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n".encode()
    with closing(connected(url, sent=head)) as made:
        assert made.recv(65_536).startswith(b"HTTP/1.1 401 ")
        made.settimeout(0.05)
        until, over = time.monotonic() + 20, False
        while not over and time.monotonic() < until:
            try:
                made.sendall(b"x")
                over = made.recv(1) == b""
            except TimeoutError:
                continue
            except (BrokenPipeError, ConnectionResetError):
                over = True
    assert over


def test_a_handshake_that_does_not_come_is_given_up(serve: Serve) -> None:
    server = serve(tls_cert=CERT, tls_key=KEY, header_timeout_us=300 * MILLISECOND)
    with closing(connected(server.url)) as silent:
        assert answered(silent) == b""
    trusting = ssl.create_default_context(cafile=CERT)
    trusting.check_hostname = False
    with closing(connected(server.url)) as plain, trusting.wrap_socket(plain) as made:
        made.sendall(HALF)
        assert answered(made).startswith(b"HTTP/1.1 408 ")


def test_handshakes_count_as_connections(serve: Serve) -> None:
    server = serve(tls_cert=CERT, tls_key=KEY, connections_max=4)
    with ExitStack() as held:
        made = [held.enter_context(closing(connected(server.url))) for _ in range(6)]
        _until(lambda: ended(made[1]))
        assert [ended(one) for one in made] == [True, True, False, False, False, False]


def test_a_slow_caller_within_the_limits_is_answered(serve: Serve, token: str) -> None:
    url = serve(header_timeout_us=20 * SECOND, body_timeout_us=20 * SECOND).url
    head = f"POST {EVENTS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
    with closing(connected(url)) as made:
        for part in (head, "Content-Length: 2\r\nConnection: close\r\n\r\n", "{", "}"):
            made.sendall(part.encode())
        assert answered(made).startswith(b"HTTP/1.1 200 ")


def test_the_machine_is_asked_for_the_files_and_the_limit_stays_below_them() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 600), hard))
        assert connections_max(HttpSettings(connections_max=400)) == 400
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 800
        assert connections_max(HttpSettings(connections_max=10**9)) == hard // 2
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)
