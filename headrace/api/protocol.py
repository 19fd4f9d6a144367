"""HTTP/1.1 with a time for each part of a request: its head, a TLS handshake included, and its
body.

Each time begins when the part does and is not prolonged by what comes of it, so a request that
drips ends as one that stands still. A caller who has begun to ask is told (408); one who has sent
nothing is not. tests/api/test_connections.py asks slowly.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from headrace.api.asking import CALLER
from headrace.api.connections import Connections
from headrace.api.errors import error_bytes
from headrace.core.errors import TooSlow
from headrace.core.time import SECOND
from headrace.define.settings import HttpSettings


def limited_protocol(connections: Connections, http: HttpSettings) -> type[asyncio.Protocol]:
    """The protocol of a server's connections, for uvicorn to call."""
    made = partial(LimitedProtocol, connections=connections, http=http)
    return cast("type[asyncio.Protocol]", made)


class LimitedProtocol(H11Protocol):
    def __init__(self, *said: Any, connections: Connections, http: HttpSettings, **more: Any):
        super().__init__(*said, **more)
        self._others = connections
        self._seconds = {
            h11.IDLE: ("head", http.header_timeout_us / SECOND),
            h11.SEND_BODY: ("body", http.body_timeout_us / SECOND),
        }
        self._part: Any = None  # of a request, which is being read
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.client and (own := self._others.of(self.client)):
            own.held_by(self._known)
        self._time()

    def _known(self) -> bool:
        """Whether a request is being answered of somebody whom the door has let in."""
        asking = self.cycle is not None and not self.cycle.response_complete
        return asking and CALLER in cast("dict[str, Any]", self.scope)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._time()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._time()

    def _time(self) -> None:
        """Begin the time of the part that is read now, once."""
        part = self.conn.their_state
        if part is self._part or self.transport.is_closing():
            return
        self._stop_timer()
        self._part = part
        if part in self._seconds:
            name, seconds = self._seconds[part]
            self._timer = self.loop.call_later(seconds, self._expire, name, seconds)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self, part: str, seconds: float) -> None:
        begun = self._part is h11.SEND_BODY or bool(self.conn.trailing_data[0])
        answered = self.cycle is not None and self.cycle.response_started
        # A response of the request before is none of this one.
        if begun and (not answered or self._part is h11.IDLE):
            error = TooSlow(f"the request's {part} did not come within {seconds:g} seconds")
            self.transport.write(error_bytes(error))
        self.transport.close()
