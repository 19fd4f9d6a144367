"""Events that are sent over HTTP, without the application: the short path of its busiest route.

A request is taken here if the application would accept its head: route, host, origin and permission
are checked by the application's own functions, and its token was authenticated by the application
within the last seconds. A head that repeats the one before on its connection is checked for its
token only. Everything else, each refusal of a head, a body or a rate included, is left to the
application, as if nothing had been done here. What the intake decides is answered here, in the
words and headers of the application.

The requests of a stream that arrive in one iteration of the event loop are one append, with one
sync and one way to the log and back; none waits for another that has not arrived.
tests/api/test_direct_sends.py compares responses, metrics and log lines with the application's.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.datastructures import Headers
from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from headrace.access.audit_log import ALLOWED
from headrace.access.caller import Caller
from headrace.access.object import Object, object_of
from headrace.api.authentication import BEARER, CALLER, REQUEST_ID, authorization_of
from headrace.api.body import JSON, media_type, split
from headrace.api.compression import BYTES_MIN, accepts_gzip, compressed
from headrace.api.errors import error_response, internal_error, log_defect, new_request_id
from headrace.api.handlers import INLINE_BYTES_MAX, Api
from headrace.api.request_metrics import ROUTE, record_request
from headrace.api.route import Route
from headrace.api.security import NO_STORE, OriginPolicy, safety_headers
from headrace.api.service import Sender
from headrace.api.shapes import SendReceipt
from headrace.core.errors import HeadraceError
from headrace.core.meters import REQUESTS
from headrace.core.spans import tracing
from headrace.ingest.intake import Outcome, Receipt

if TYPE_CHECKING:
    from headrace.api.protocol import LimitedProtocol

# Headers that change how a body is read or sent.
_ELSEWHERE = ("transfer-encoding", "content-encoding", "expect", "upgrade")
_LENGTH = b"content-length"
Pairs = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class SendHead:
    """What follows from the head of a request, but for its length."""

    stream: Object
    media: str
    secret: str
    gzip: bool
    safety: bytes  # header lines of every response


@dataclass(frozen=True, slots=True)
class ReadHead:
    """A head as it was sent, without its length; `send` is None if the application answers it."""

    url: bytes
    headers: Pairs
    send: SendHead | None


class _NobodyWaits:
    def set(self) -> None:
        """The application would wait for the body; here the protocol calls when it is complete."""


class DirectSend:
    """A request that is read or answered; for uvicorn's protocol it is the current cycle."""

    __slots__ = (
        "began", "body", "caller", "disconnected", "head", "keep_alive", "more_body", "protocol",
        "records", "response_complete", "response_started", "scope",
    )  # fmt: skip
    message_event = _NobodyWaits()

    def __init__(self, protocol: LimitedProtocol, head: SendHead, caller: Caller) -> None:
        self.protocol, self.head, self.caller = protocol, head, caller
        self.scope: dict[str, Any] = protocol.scope  # type: ignore[assignment]
        self.keep_alive: bool = protocol.parser.should_keep_alive()
        self.body, self.more_body, self.records = bytearray(), True, list[bytes]()
        self.response_started = self.response_complete = self.disconnected = False
        self.began = time.perf_counter()


class DirectSends:
    """The short path of a project's server. Everything here is for one event loop."""

    def __init__(self, api: Api, route: Route[Api], origins: OriginPolicy) -> None:
        self._api, self._route, self._origins = api, route, origins
        self._path = re.compile(route.path.encode().replace(b"{stream}", rb"(\w+)"))
        self._bytes_max = min(INLINE_BYTES_MAX, api.http.body_bytes_max)
        self._groups: dict[str, StreamSends] = {}

    def begin(self, protocol: LimitedProtocol) -> DirectSend | None:
        """Take a request whose head is complete; None if the application answers it."""
        headers, length = _without_length(protocol.headers)
        if not 0 < length <= self._bytes_max or protocol.parser.get_method() != b"POST":
            return None
        known = protocol.read_head
        if known is None or known.url != protocol.url or known.headers != headers:
            known = protocol.read_head = self._read(protocol, headers)
        head = known.send
        if head is None or self._busy(protocol):
            return None
        caller = self._api.access.recent_caller(head.secret)
        if caller is None or not caller.allows(self._route.needs.operation, head.stream):
            return None
        if not self._knows(head.stream.name):
            return None
        self._api.send_limit.enter()
        scope: dict[str, Any] = protocol.scope  # type: ignore[assignment]
        scope["method"], scope["path"] = "POST", protocol.url.decode("ascii")
        scope[ROUTE], scope[CALLER] = self._route.path, caller
        return DirectSend(protocol, head, caller)

    def _busy(self, protocol: LimitedProtocol) -> bool:
        """Whether a request has to wait, or to be traced."""
        full = self._api.send_limit.full
        return full or protocol.flow.write_paused or tracing()

    def _read(self, protocol: LimitedProtocol, pairs: Pairs) -> ReadHead:
        found, headers = self._path.fullmatch(protocol.url), Headers(raw=pairs)
        old = protocol.parser.get_http_version() != "1.1"
        if not found or old or any(name in headers for name in _ELSEWHERE):
            return ReadHead(protocol.url, pairs, None)
        scope = {**protocol.scope, "method": "POST", "path": found[0].decode()}
        send = self._send_head(found[1].decode(), scope, headers)
        return ReadHead(protocol.url, pairs, send)

    def _send_head(self, stream: str, scope: Scope, headers: Headers) -> SendHead | None:
        scheme, secret = authorization_of(headers)
        if scheme.lower() != BEARER or self._origins.refusal(scope, headers) is not None:
            return None
        safety = {**safety_headers(scope), **NO_STORE}
        return SendHead(
            object_of("stream", stream),
            media_type(headers),
            secret.strip(),
            accepts_gzip(headers),
            "".join(f"{name.lower()}: {value}\r\n" for name, value in safety.items()).encode(),
        )

    def _knows(self, stream: str) -> bool:
        """Whether there is such a stream, whose name is in lower case: so these are not more."""
        if stream not in self._groups:
            try:
                sender = self._api.service.sender(stream)
            except HeadraceError:
                return False
            self._groups[stream] = StreamSends(sender, self._answer)
        return True

    def received(self, send: DirectSend) -> bool:
        """The body is complete. False if the application has to answer it."""
        body, user = bytes(send.body), send.caller.user
        try:
            send.records = split(body, send.head.media)
            self._api.limits.take_bytes(user, len(body))
        except Exception:  # the application finds and reports the same
            return False
        send.scope[REQUEST_ID] = new_request_id()
        REQUESTS.labels(user, self._route.needs.operation, ALLOWED).inc()
        self._groups[send.head.stream.name].add(send)
        return True

    def leave(self, send: DirectSend) -> None:
        """The application answers the request after all."""
        self._api.send_limit.leave()
        del send.scope[CALLER]

    def _answer(self, send: DirectSend, outcome: Outcome) -> None:
        self._api.send_limit.leave()
        status, extra, body = _response(send, outcome)
        record_request(send.scope, status, time.perf_counter() - send.began)
        send.protocol.answer(send, _bytes(send, status, extra, body))


class StreamSends:
    """The sends of one stream that have arrived in this iteration of the event loop."""

    def __init__(self, submit: Sender, answer: Callable[[DirectSend, Outcome], None]) -> None:
        self._submit, self._answer = submit, answer
        self._loop = asyncio.get_running_loop()
        self._arrived: list[DirectSend] = []

    def add(self, send: DirectSend) -> None:
        if not self._arrived:
            self._loop.call_soon(self._append)
        self._arrived.append(send)

    def _append(self) -> None:
        group, self._arrived = self._arrived, []
        try:
            appended = self._submit([send.records for send in group])
        except Exception as error:
            self._answer_all(group, [error] * len(group))
        else:
            appended.add_done_callback(partial(self._on_ended, group))

    def _on_ended(self, group: list[DirectSend], appended: Future[list[Outcome]]) -> None:
        """Called by the thread of the log."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._answer_all, group, appended.result())

    def _answer_all(self, group: list[DirectSend], outcomes: Sequence[Outcome]) -> None:
        for send, outcome in zip(group, outcomes, strict=True):
            self._answer(send, outcome)


def _without_length(headers: Pairs) -> tuple[Pairs, int]:
    """The other headers, and the length of the body; 0 if it is not said once."""
    lengths = [value for name, value in headers if name == _LENGTH]
    length = int(lengths[0]) if len(lengths) == 1 and lengths[0].isdigit() else 0
    return [pair for pair in headers if pair[0] != _LENGTH], length


def _response(send: DirectSend, outcome: Outcome) -> tuple[int, Pairs, bytes]:
    """The status of an outcome, its own headers, and its body."""
    if isinstance(outcome, Receipt):
        return 200, [], msgspec.json.encode(SendReceipt.of(outcome))
    if not isinstance(outcome, HeadraceError):
        log_defect(outcome, send.scope)
        outcome = internal_error(send.scope[REQUEST_ID])
    answer = error_response(outcome)
    general = (b"content-length", b"content-type")
    extra = [pair for pair in answer.raw_headers if pair[0] not in general]
    return answer.status_code, extra, bytes(answer.body)


def _bytes(send: DirectSend, status: int, extra: Pairs, body: bytes) -> bytes:
    if len(body) >= BYTES_MIN:
        extra = [*extra, (b"vary", b"Accept-Encoding")]
        if send.head.gzip:
            body, extra = compressed(body), [*extra, (b"content-encoding", b"gzip")]
    if not send.keep_alive:
        extra = [*extra, (b"connection", b"close")]
    pairs = [*send.protocol.server_state.default_headers, *extra]
    lines = b"".join([b"%b: %b\r\n" % pair for pair in pairs])
    fixed = f"content-length: {len(body)}\r\ncontent-type: {JSON}\r\nx-request-id: "
    fixed += f"{send.scope[REQUEST_ID]}\r\n"
    return b"".join((STATUS_LINE[status], lines, fixed.encode(), send.head.safety, b"\r\n", body))
