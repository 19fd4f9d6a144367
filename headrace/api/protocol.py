"""HTTP/1.1 with a timeout for each part of a request: its head, including a TLS handshake, and its
body. The head has a maximum size too.

A timeout begins with its part and is not extended by received bytes, so a slow request ends like a
stalled one. A client that has begun a request gets 408; one that has sent nothing is disconnected.
The timeout of a pipelined request begins when the previous one is answered.
tests/api/test_connections.py sends slowly.
"""

from __future__ import annotations

import asyncio
import sys
from enum import Enum
from functools import partial
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from headrace.api.authentication import CALLER
from headrace.api.connections import Connections
from headrace.api.direct_sends import DirectSend, DirectSends, ReadHead
from headrace.api.errors import error_bytes
from headrace.core.errors import BadRequest, HeadraceError, TooSlow
from headrace.core.time import SECOND
from headrace.define.settings import HttpSettings

HEAD_BYTES_MAX = 65_536
TOGETHER_BYTES_MAX = 65_536  # larger writes are not worth a copy


class RequestPart(Enum):
    """The part of a request that is being read."""

    HEAD = "head"
    BODY = "body"


def limited_protocol(
    connections: Connections, http: HttpSettings, sends: DirectSends | None = None
) -> type[asyncio.Protocol]:
    """The protocol of a server's connections, for uvicorn to call."""
    made = partial(LimitedProtocol, connections=connections, http=http, sends=sends)
    return cast("type[asyncio.Protocol]", made)


class CoalescingTransport:
    """A transport that sends all writes of one iteration of the event loop together: the head and
    the body of a small response are one packet, and one system call.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._parts, self._bytes = list[bytes](), 0

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)
        self._bytes += len(data)
        if self._bytes > TOGETHER_BYTES_MAX:
            self._flush()

    def send(self, data: bytes) -> None:
        """Write a whole response, after what was written before."""
        self._flush()
        self._transport.write(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._parts:
            self._transport.write(b"".join(self._parts))
            self._parts, self._bytes = [], 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class LimitedProtocol(HttpToolsProtocol):
    read_head: ReadHead | None = None  # the newest of this connection

    def __init__(
        self,
        *args: Any,
        connections: Connections,
        http: HttpSettings,
        sends: DirectSends | None,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self._others, self._sends = connections, sends
        self._seconds = {
            RequestPart.HEAD: http.header_timeout_us / SECOND,
            RequestPart.BODY: http.body_timeout_us / SECOND,
        }
        self._part: RequestPart | None = RequestPart.HEAD
        self._head_begun, self._head_bytes = False, 0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(
            cast("asyncio.Transport", CoalescingTransport(transport, self.loop))
        )
        if self.client and (own := self._others.of(self.client)):
            own.attach(self._authenticated)
        self._begin(RequestPart.HEAD)
        self._time()

    def _authenticated(self) -> bool:
        """Whether a request of an authenticated caller is being answered."""
        return self._answering() and CALLER in cast("dict[str, Any]", self.scope)

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if (send := self._direct_send()) and send.more_body:
            self._hand_over(send)  # the application reports that the client has gone
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # Only now: a request that arrived whole needs no timeout of its body.
        self._time()
        if self._part is not RequestPart.HEAD:
            return
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES_MAX:
            self._end(BadRequest(f"the request's head has more than {HEAD_BYTES_MAX:,} bytes"))

    def send_400_response(self, msg: str) -> None:
        reason = str(sys.exception())  # of the parser, which has just raised it
        self._end(BadRequest("the request is not valid HTTP/1.1", detail=reason))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_begun, self._head_bytes = True, 0
        self._begin(RequestPart.HEAD)

    def on_headers_complete(self) -> None:
        taken = self._sends.begin(self) if self._sends and not self._answering() else None
        if taken is None:
            super().on_headers_complete()
        else:
            self.cycle = cast("Any", taken)
        self._begin(RequestPart.BODY)

    def on_body(self, body: bytes) -> None:
        if send := self._direct_send():
            send.body += body
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._begin(None)
        if self._sends and (send := self._direct_send()) and not self._sends.received(send):
            self._hand_over(send)

    def _direct_send(self) -> DirectSend | None:
        """The request that is being read, if it is taken without the application."""
        current: object = self.cycle
        reading = isinstance(current, DirectSend) and not current.response_complete
        return cast("DirectSend", current) if reading else None

    def _hand_over(self, send: DirectSend) -> None:
        """Let the application answer a request that was begun without it."""
        if self._sends:
            self._sends.leave(send)
        self.cycle = cast("Any", None)
        super().on_headers_complete()
        self.cycle.body += send.body
        self.cycle.more_body = send.more_body
        self.cycle.message_event.set()

    def answer(self, send: DirectSend, response: bytes) -> None:
        """The response to a request that was taken without the application."""
        send.response_started = send.response_complete = True
        if send.disconnected:
            return
        cast("CoalescingTransport", self.transport).send(response)
        if not send.keep_alive:
            self.transport.close()
        self.on_response_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._part is None and not self.pipeline:
            self._head_begun = False
            self._begin(RequestPart.HEAD)
        self._time()

    def _begin(self, part: RequestPart | None) -> None:
        if part is not self._part:
            self._stop_timer()
            self._part = part

    def _time(self) -> None:
        """Start the timeout of the part that is being read, once, and not before this request's
        turn.
        """
        before = self._answering() if self._part is RequestPart.HEAD else bool(self.pipeline)
        if self._timer is None and self._part and not before and not self.transport.is_closing():
            seconds = self._seconds[self._part]
            self._timer = self.loop.call_later(seconds, self._expire, self._part, seconds)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self, part: RequestPart, seconds: float) -> None:
        answered = self.cycle is not None and self.cycle.response_started
        # A response may still be that of the previous request.
        if self._head_begun if part is RequestPart.HEAD else not answered:
            error = TooSlow(
                f"the request's {part.value} was not received within {seconds:g} seconds"
            )
            self._end(error)
        self.transport.close()

    def _end(self, error: HeadraceError) -> None:
        if not self.transport.is_closing():
            self.transport.write(error_bytes(error))
            self.transport.close()
