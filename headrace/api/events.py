"""A subscription over HTTP: server-sent events, one for each thing heard.

`id:` is the number to resume after, `event:` says what it is (pane, relation, reset; slow, end and
failed are the last), `data:` is JSON on one line. A comment is sent when nothing else was for a
while, so that a dead connection is noticed. The hearing is closed however the connection ends.
tests/api/test_events.py reads a stream on a real server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from headrace.api.handlers import Api
from headrace.api.service import Hearing
from headrace.core.errors import BadRequest
from headrace.serving.feed import Heard

EVENTS_MEDIA = "text/event-stream"
QUIET_S_MAX = 15.0


async def subscribe(api: Api, request: Request) -> Response:
    text = request.query_params.get("sql")
    if not text:
        raise BadRequest("the parameter sql is missing", hint="?sql=SUBSCRIBE TO view")
    after = _sequence(request.headers.get("last-event-id"))
    loop, news = asyncio.get_running_loop(), asyncio.Event()
    news_ring = partial(ring, loop, news)
    hearing = await api.quick.run(partial(api.service.subscribe, text, after, news_ring))
    return EventStream(hearing, news)


def ring(loop: asyncio.AbstractEventLoop, news: asyncio.Event) -> None:
    """Say to a loop, from another thread, that something has come."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(news.set)


def _sequence(text: str | None) -> int | None:
    """The number in Last-Event-ID; one that is none was never given by us, so it is as old."""
    if not text:
        return None
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else -1


class EventStream(StreamingResponse):
    """Everything that is heard, until one of both sides ends it."""

    def __init__(self, hearing: Hearing, news: asyncio.Event) -> None:
        self._hearing = hearing
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(_events(hearing, news), media_type=EVENTS_MEDIA, headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._hearing.close()


async def _events(hearing: Hearing, news: asyncio.Event) -> AsyncIterator[bytes]:
    while True:
        news.clear()
        ended, heard = hearing.ended, hearing.take()
        if heard:
            yield b"".join(map(event_bytes, heard))
        if ended:
            return
        try:
            async with asyncio.timeout(QUIET_S_MAX):
                await news.wait()
        except TimeoutError:
            yield b": still here\n\n"


def event_bytes(heard: Heard) -> bytes:
    r"""One event as it goes over the wire.

    >>> event_bytes(Heard("reset", {"reason": "gone"}, 7))
    b'id: 7\nevent: reset\ndata: {"reason":"gone"}\n\n'
    """
    number = b"" if heard.id is None else b"id: %d\n" % heard.id
    return b"%sevent: %s\ndata: %s\n\n" % (
        number,
        heard.event.encode(),
        msgspec.json.encode(heard.data),
    )
