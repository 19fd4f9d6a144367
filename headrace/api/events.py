"""A subscription over HTTP: server-sent events, one for each event of the subscription.

`id:` is what to resume after, `event:` says what it is (of a view pane, relation and reset, of a
stream rows and position; slow, end and failed are the last), `data:` is JSON on one line. A comment
is sent as a heartbeat when there was no event for a while, so that a dead connection is noticed.
The subscription is closed whenever the connection ends. A caller who may no longer read the view or
stream, because a token or grant was revoked, gets `failed`. tests/api/test_events.py reads a stream
on a real server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from headrace.access.object import Object
from headrace.access.operation import Operation
from headrace.api.authentication import authenticate, caller_of
from headrace.api.handlers import Api
from headrace.core.errors import BadRequest, Forbidden, Unauthenticated
from headrace.define.stream_subscription import subscribed_name
from headrace.serving.subscriber import FAILED, OpenSubscription, SubscriptionEvent

EVENTS_MEDIA = "text/event-stream"
QUIET_S_MAX = 5.0


async def subscribe(api: Api, request: Request) -> Response:
    text = request.query_params.get("sql")
    if not text:
        raise BadRequest("the parameter sql is missing", hint="?sql=SUBSCRIBE TO view")
    after = request.headers.get("last-event-id") or None
    loop, news = asyncio.get_running_loop(), asyncio.Event()
    caller = caller_of(request)
    about = await api.quick.run(partial(api.service.subscribed, text, caller))
    check = partial(_check, api, request, about, subscribed_name(text))
    check()
    call = partial(api.service.subscribe, text, after, partial(wake, loop, news), caller)
    return EventStream(await api.subscribing.run(caller.user, call), news, check)


def _check(api: Api, request: Request, about: Object, name: str) -> None:
    authenticate(api.access, request).check(Operation.READ, about, f"'{name}'")


def wake(loop: asyncio.AbstractEventLoop, news: asyncio.Event) -> None:
    """Wake a loop, from another thread: there are new events."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(news.set)


class EventStream(StreamingResponse):
    """All events of a subscription, until one side closes it."""

    def __init__(
        self,
        hearing: OpenSubscription,
        news: asyncio.Event,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._hearing = hearing
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(_events(hearing, news, check), media_type=EVENTS_MEDIA, headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._hearing.close()


async def _events(
    hearing: OpenSubscription, news: asyncio.Event, check: Callable[[], None]
) -> AsyncIterator[bytes]:
    while True:
        news.clear()
        try:
            check()
        except (Unauthenticated, Forbidden) as error:
            yield event_bytes(SubscriptionEvent(FAILED, error.as_dict(), None))
            return
        ended, heard = hearing.ended, hearing.poll()
        if heard:
            yield b"".join(map(event_bytes, heard))
        if ended:
            return
        try:
            async with asyncio.timeout(QUIET_S_MAX):
                await news.wait()
        except TimeoutError:
            yield b": still here\n\n"


def event_bytes(heard: SubscriptionEvent) -> bytes:
    r"""One event as it goes over the wire.

    >>> event_bytes(SubscriptionEvent("position", {}, "7,9"))
    b'id: 7,9\nevent: position\ndata: {}\n\n'
    """
    place = b"" if heard.id is None else b"id: %s\n" % heard.id.encode()
    return b"%sevent: %s\ndata: %s\n\n" % (
        place,
        heard.event.encode(),
        msgspec.json.encode(heard.data),
    )
