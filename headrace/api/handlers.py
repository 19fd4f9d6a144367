"""What each route does: read the request, ask the service, write the answer.

The event loop never waits for the service: what may block runs in a thread, of which there is a
stated number, and ingest needs none because its future is awaited. More work than the stated limits
is refused with Overloaded before anything is done for it.
tests/api/test_routes.py checks each route on a real server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headrace.access.access import Access
from headrace.access.object import object_of
from headrace.access.operation import Operation
from headrace.api.asking import caller
from headrace.api.body import Body, read_body
from headrace.api.limits import Gate, Limits
from headrace.api.readable import readable_status
from headrace.api.service import Service
from headrace.api.shapes import (
    LIMIT_MAX,
    Accepted,
    Alive,
    AuditQuestion,
    Audits,
    Ready,
    StatusReport,
)
from headrace.api.threads import QUICK_THREADS, SLOW_THREADS, FairThreads, Threads
from headrace.console import Console, load
from headrace.core.errors import BadRequest, Unavailable
from headrace.define.settings import HttpSettings
from headrace.ingest.intake import Receipt

# Reading the fields of a small body takes less than going to a thread and back.
INLINE_BYTES_MAX = 128 << 10
METRICS_MEDIA = "text/plain; version=0.0.4; charset=utf-8"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Api:
    """What the handlers share. Queries have threads of their own, given out fairly by user, so that
    however slow they are, status and readiness are still answered; so have rebuilds and audits, for
    which no query should wait; and so have those who begin to hear a stream, because Spark may have
    to start for their condition.
    """

    service: Service
    http: HttpSettings
    access: Access
    gate: Gate
    limits: Limits
    console: Console = field(default_factory=load)
    openapi: bytes = b"{}"
    quick: Threads = field(default_factory=lambda: Threads(QUICK_THREADS))
    slow: Threads = field(default_factory=lambda: Threads(SLOW_THREADS))
    queries: FairThreads = field(default_factory=FairThreads)
    works: Threads = field(default_factory=lambda: Threads(SLOW_THREADS))
    joining: Threads = field(default_factory=lambda: Threads(SLOW_THREADS))


class Reception(Protocol):
    """What the routes of users and sessions need, in a project and in a server of jobs."""

    @property
    def access(self) -> Access: ...
    @property
    def http(self) -> HttpSettings: ...
    @property
    def quick(self) -> Threads: ...


def json_response(value: Any, headers: Mapping[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(value), headers=headers, media_type="application/json")


async def send_events(api: Api, request: Request) -> Response:
    with api.gate:
        body = await read_body(request, api.http.body_bytes_max)
        api.limits.take_bytes(caller(request).user, len(body.data))
        submit = partial(_submit, api, request.path_params["stream"], body)
        small = len(body.data) <= INLINE_BYTES_MAX and not body.encoding
        future = submit() if small else await api.quick.run(submit)
        return json_response(Accepted.of(await asyncio.wrap_future(future)))


def _submit(api: Api, stream: str, body: Body) -> Future[Receipt]:
    return api.service.submit(stream, body.records(api.http.body_bytes_max))


async def read_view(api: Api, request: Request) -> Response:
    return json_response(await api.quick.run(_about_view(api.service.view, request, "order")))


async def late(api: Api, request: Request) -> Response:
    return json_response(await api.quick.run(_about_view(api.service.late, request)))


def _about_view(ask: Callable[..., T], request: Request, *options: str) -> Callable[[], T]:
    """A question about the view's rows with some key values, in some range of windows, and with
    options of its own.
    """
    asked = parameters(request)
    said = {name: asked.pop(name) for name in options if name in asked}
    since, until = asked.pop("from", None), asked.pop("to", None)
    limit = limit_of(asked.pop("limit", None))
    name = request.path_params["view"]
    return partial(ask, name, _keys(asked), since=since, until=until, limit=limit, **said)


def _keys(asked: dict[str, str]) -> dict[str, str | None] | None:
    """The parameters that are left are keys; `null` names those that are null."""
    nulls = filter(None, asked.pop("null", "").split(","))
    return {**asked, **dict.fromkeys(nulls)} or None


async def why(api: Api, request: Request) -> Response:
    found = await _traced(api, request, api.service.why)
    # Whole events are more than the view tells of them.
    for stream in {seen.stream for seen in found.listed} | set(found.as_of):
        caller(request).check(Operation.READ, object_of("stream", stream), "the events behind it")
    return json_response(found)


async def replay(api: Api, request: Request) -> Response:
    return json_response(await _traced(api, request, api.service.replay))


async def _traced(api: Api, request: Request, ask: Callable[..., T]) -> T:
    asked = parameters(request)
    window, limit = asked.pop("window", None), limit_of(asked.pop("limit", None))
    call = partial(ask, request.path_params["view"], _keys(asked), window=window)
    return await queried(api, request, partial(call, limit=limit) if limit else call)


async def queried(api: Api, request: Request, call: Callable[[], T]) -> T:
    user = caller(request).user
    with api.limits.query(user):
        return await api.queries.run(user, call)


async def status(api: Api, request: Request) -> Response:
    found = StatusReport.of(await api.quick.run(api.service.status))
    return json_response(readable_status(found, caller(request)))


async def dead_letters(api: Api, request: Request) -> Response:
    limit = limit_of(parameters(request).get("limit"))
    stream = request.path_params["stream"]
    call = partial(api.service.dead_letters, stream, *([limit] if limit else []))
    return json_response(await api.quick.run(call))


async def rebuild(api: Api, request: Request) -> Response:
    call = partial(api.service.rebuild, request.path_params["view"])
    return json_response(await api.works.run(call))


async def audit(api: Api, request: Request) -> Response:
    asked, asks = await decoded(api, request, AuditQuestion), caller(request)
    asks.check(Operation.AUDIT, object_of("view", asked.view) if asked.view else asks.whole_job)
    return json_response(Audits(await api.works.run(partial(api.service.audit, asked.view))))


async def alive(api: Api, request: Request) -> Response:
    return json_response(Alive(True))


async def ready(api: Api, request: Request) -> Response:
    able, reason = await api.quick.run(api.service.ready)
    if not able:
        raise Unavailable(reason or "questions cannot be answered yet")
    return json_response(Ready(True, reason))


async def metrics(api: Api, request: Request) -> Response:
    return Response(await api.quick.run(api.service.metrics), media_type=METRICS_MEDIA)


async def openapi(api: Api, request: Request) -> Response:
    return Response(api.openapi, media_type="application/json")


def parameters(request: Request) -> dict[str, str]:
    """The query parameters; BadRequest where one is given twice, because only one could be used."""
    pairs = request.query_params.multi_items()
    asked = dict(pairs)
    if len(asked) < len(pairs):
        raise BadRequest("a query parameter is given twice", hint="use POST /v1/sql with IN (…).")
    return asked


def limit_of(text: str | None) -> int | None:
    """The number in a limit; BadRequest if it is none."""
    if text is None:
        return None
    # The length first: Python refuses to read a number of thousands of digits.
    if text.isascii() and text.isdecimal() and len(text) <= 9 and 1 <= int(text) <= LIMIT_MAX:
        return int(text)
    shown = text if len(text) <= 40 else text[:40] + "…"
    raise BadRequest(f"limit must be a whole number from 1 to {LIMIT_MAX}, not '{shown}'")


async def decoded(api: Reception, request: Request, question: type[T]) -> T:
    """The body of a request; BadRequest if it is of another form."""
    limit = api.http.body_bytes_max
    data = (await read_body(request, limit)).plain(limit)
    try:
        return msgspec.json.decode(data or b"{}", type=question)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BadRequest(f"the body is not of the form that this route takes: {error}") from error
