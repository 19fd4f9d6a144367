"""`RemoteService` is a Service: what it is asked arrives, and what comes back is what was given."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from headrace.api.client import RemoteService, _conditions
from headrace.api.resources.status import StatusRequest
from headrace.api.server import HttpServer
from headrace.api.service import Service
from headrace.core.errors import (
    BadRequest,
    EngineFailed,
    HeadraceError,
    NotFound,
    Overloaded,
    Unavailable,
)
from headrace.ingest.intake import Receipt

from .conftest import (
    ANSWER,
    AUDITS,
    IMPORTED,
    METRICS,
    PLANNED,
    REBUILT,
    Shop,
)

CALLS: list[tuple[Callable[[Service], Any], Any, tuple[Any, ...]]] = [
    (lambda s: s.sql("SELECT 'é'"), ANSWER, ("sql", "SELECT 'é'", None)),
    (lambda s: s.sql("SELECT 1", 5), ANSWER, ("sql", "SELECT 1", 5)),
    (lambda s: s.sql("SELECT 1", None, "q1"), ANSWER, ("sql", "SELECT 1", None, "q1")),
    (lambda s: s.cancel("q1"), True, ("cancel", "q1")),
    (lambda s: s.query_plan("SELECT 1"), PLANNED, ("query_plan", "SELECT 1")),
    (lambda s: s.ready(), (True, ""), ("ready",)),
    (lambda s: s.rebuild("visitors"), REBUILT, ("rebuild", "visitors")),
    (lambda s: s.import_part("clicks", "0.part"), IMPORTED, ("import_part", "clicks", "0.part")),
    (lambda s: s.audit(), AUDITS, ("audit", None)),
    (lambda s: s.audit("visitors"), AUDITS, ("audit", "visitors")),
    (lambda s: s.metrics()[: len(METRICS)], METRICS, ("metrics",)),
]


@pytest.mark.parametrize(("ask", "answer", "call"), CALLS, ids=[str(c[2]) for c in CALLS])
def test_each_method_goes_there_and_back(
    remote: RemoteService,
    shop: Shop,
    ask: Callable[[Service], Any],
    answer: Any,
    call: tuple[Any, ...],
) -> None:
    assert ask(remote) == answer
    assert shop.calls == [call]


@pytest.mark.parametrize(
    "records",
    [
        [b'{"user":"ada"}', b"{oops", b"\xff"],
        [b'{\n"user": "ada"}', b'{"user":"bob"}'],
        [b"{oops\n{", b'{"a":1}', b"a\r"],
        [],
    ],
    ids=["lines", "array", "one by one", "none"],
)
def test_records_arrive_byte_for_byte(
    remote: RemoteService, shop: Shop, records: list[bytes]
) -> None:
    receipt = remote.submit("clicks", records).result(0)
    assert receipt.accepted == len(records)
    assert shop.logged() == records


def test_a_receipt_is_the_one_of_the_log(remote: RemoteService) -> None:
    records = [b'{"event_id":1}', b'{"event_id":1}', b'{"event_id":1,"ms":2}']
    assert remote.submit("clicks", records).result(0) == Receipt(3, 1, 1, ((0, 0, 3),))


def test_an_empty_record_is_refused_and_not_lost(remote: RemoteService) -> None:
    with pytest.raises(BadRequest, match="the body is empty"):
        remote.submit("clicks", [b""]).result(0)


@pytest.mark.parametrize("kind", [kind for _, kind in sorted(_conditions().items())])
def test_each_error_comes_back_as_itself(
    remote: RemoteService, shop: Shop, kind: type[HeadraceError]
) -> None:
    shop.fail = kind("it is so", detail="why", hint="do this", origin="shop.sql:3")
    with pytest.raises(kind) as raised:
        remote.ask(StatusRequest())
    assert type(raised.value) is kind
    assert raised.value.as_dict() == shop.fail.as_dict()


def test_an_unknown_condition_is_a_failed_engine(remote: RemoteService, shop: Shop) -> None:
    class OddError(HeadraceError):
        @property
        def condition(self) -> str:
            return "OfALaterVersion"

    shop.fail = OddError("it is odd")
    with pytest.raises(EngineFailed, match="it is odd"):
        remote.metrics()


def test_an_unknown_stream_fails_the_future(remote: RemoteService) -> None:
    with pytest.raises(NotFound, match="there is no stream 'a b'"):
        remote.submit("a b", [b"{}"]).result(0)


def test_not_ready_says_why(remote: RemoteService, shop: Shop) -> None:
    shop.able = (False, "still building")
    assert remote.ready() == (False, "still building")


def test_nothing_that_answers_is_unavailable_with_a_hint() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with (
            RemoteService(f"http://127.0.0.1:{taken.getsockname()[1]}") as remote,
            pytest.raises(Unavailable) as raised,
        ):
            remote.ready()
    assert raised.value.hint == "is it running? start it with `headrace run`"


class HeldTime:
    """A clock that moves only when somebody sleeps."""

    def __init__(self, then: Callable[[int], None]) -> None:
        self.now, self.sleeps, self._then = 0.0, list[float](), then

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.sleeps.append(seconds)
        self._then(len(self.sleeps))


def test_want_of_room_is_waited_out(server: HttpServer, shop: Shop, token: str) -> None:
    shop.fail = Unavailable("the log is busy")
    later = {2: Overloaded("full"), 4: None}
    time = HeldTime(lambda n: setattr(shop, "fail", later.get(n, shop.fail)))
    with RemoteService(server.url, token, sleep=time.sleep, clock=lambda: time.now) as remote:
        assert remote.submit("clicks", [b"{}"]).result(0).accepted == 1
    assert time.sleeps == [0.05, 0.1, 1.0, 1.0]


def test_waiting_ends(server: HttpServer, shop: Shop, token: str) -> None:
    shop.fail = Overloaded("full")
    time = HeldTime(lambda n: None)
    with (
        RemoteService(
            server.url, token, retry_s_max=5, sleep=time.sleep, clock=lambda: time.now
        ) as remote,
        pytest.raises(Overloaded, match="full"),
    ):
        remote.submit("clicks", [b"{}"]).result(0)
    assert 4 <= time.now <= 5


class Stranger(BaseHTTPRequestHandler):
    """Another program on the port."""

    def do_GET(self) -> None:
        status = 200 if self.path == "/v1/status" else 502
        self.send_response(status)
        self.end_headers()
        self.wfile.write(b"<html>hello</html>")

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_a_stranger_on_the_port_is_recognised() -> None:
    with HTTPServer(("127.0.0.1", 0), Stranger) as stranger:
        thread = threading.Thread(target=stranger.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        with RemoteService(f"http://127.0.0.1:{stranger.server_port}") as remote:
            with pytest.raises(EngineFailed, match="is not from a Headrace server"):
                remote.ask(StatusRequest())
            with pytest.raises(EngineFailed, match="with status 502 and no Headrace error"):
                remote.metrics()
        stranger.shutdown()
        thread.join()
