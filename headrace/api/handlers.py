"""The handlers of routes: decode the request, call the service, encode the response.

The event loop never blocks: blocking calls run in thread pools of fixed size, and ingest needs none
because its future is awaited. Requests above the limits are refused with Overloaded before any work
is done for them.
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
from headrace.api.authentication import caller_of
from headrace.api.body import Body, read_body
from headrace.api.get_request import parse_request
from headrace.api.limits import ConcurrencyLimit, UserLimits
from headrace.api.resources.rows import ViewRequest
from headrace.api.resources.status import StatusRequest
from headrace.api.service import LocalService
from headrace.api.shapes import AuditRequest, AuditResults, Liveness, Readiness, SendReceipt
from headrace.api.threads import QUICK_THREADS, SLOW_THREADS, FairThreads, Threads
from headrace.console import Console, load
from headrace.core.errors import BadRequest, Unavailable
from headrace.define.settings import HttpSettings
from headrace.ingest.intake import Receipt

# Decoding a small body takes less time than a switch to a thread and back.
INLINE_BYTES_MAX = 128 << 10
METRICS_MEDIA = "text/plain; version=0.0.4; charset=utf-8"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Api:
    """The context of all handlers. Queries, reads of resources and new subscriptions, for whose
    condition Spark may have to start, have a thread pool each, shared fairly between users, so that
    slow ones delay neither other users nor status, readiness and sign-in. Rebuilds and audits have
    one, so that no query waits for them.
    """

    service: LocalService
    http: HttpSettings
    access: Access
    send_limit: ConcurrencyLimit
    limits: UserLimits
    console: Console = field(default_factory=load)
    openapi: bytes = b"{}"
    quick: Threads = field(default_factory=lambda: Threads(QUICK_THREADS))
    slow: Threads = field(default_factory=lambda: Threads(SLOW_THREADS))
    queries: FairThreads = field(default_factory=FairThreads)
    reads: FairThreads = field(default_factory=FairThreads)
    subscribing: FairThreads = field(default_factory=FairThreads)
    maintenance: Threads = field(default_factory=lambda: Threads(SLOW_THREADS))


class AccessApi(Protocol):
    """The context of the handlers of users and sessions, in a project and in a server of jobs."""

    @property
    def access(self) -> Access: ...
    @property
    def http(self) -> HttpSettings: ...
    @property
    def quick(self) -> Threads: ...


def json_response(value: Any, headers: Mapping[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(value), headers=headers, media_type="application/json")


async def send_events(api: Api, request: Request) -> Response:
    with api.send_limit:
        body = await read_body(request, api.http.body_bytes_max)
        api.limits.take_bytes(caller_of(request).user, len(body.data))
        submit = partial(_submit, api, request.path_params["stream"], body)
        small = len(body.data) <= INLINE_BYTES_MAX and not body.encoding
        future = submit() if small else await api.quick.run(submit)
        return json_response(SendReceipt.of(await asyncio.wrap_future(future)))


def _submit(api: Api, stream: str, body: Body) -> Future[Receipt]:
    return api.service.submit(stream, body.records(api.http.body_bytes_max))


async def import_part(api: Api, request: Request) -> Response:
    names = request.path_params
    call = partial(api.service.import_part, names["stream"], names["part"])
    return json_response(SendReceipt.of(await api.slow.run(call)))


async def read_view(api: Api, request: Request) -> Response:
    asked = parse_request(ViewRequest, request.path_params, request.query_params.multi_items())
    # A switch to a thread and back takes longer than finding a row in memory.
    plain = not (asked.since or asked.until or asked.order or asked.limit)
    found = api.service.row(asked.view, keys) if plain and (keys := asked.key_values) else None
    return json_response(found or await run_read(api, request, partial(api.service.ask, asked)))


async def status(api: Api, request: Request) -> Response:
    call = partial(StatusRequest().readable, api.service, caller_of(request))
    return json_response(await api.quick.run(call))


async def run_read(api: Api, request: Request, call: Callable[[], T]) -> T:
    return await api.reads.run(caller_of(request).user, call)


async def run_query(api: Api, request: Request, call: Callable[[], T]) -> T:
    user = caller_of(request).user
    with api.limits.query(user):
        return await api.queries.run(user, call)


async def rebuild(api: Api, request: Request) -> Response:
    call = partial(api.service.rebuild, request.path_params["view"])
    return json_response(await api.maintenance.run(call))


async def audit(api: Api, request: Request) -> Response:
    body, caller = await decode_body(api, request, AuditRequest), caller_of(request)
    caller.check(Operation.AUDIT, object_of("view", body.view) if body.view else caller.whole_job)
    return json_response(
        AuditResults(await api.maintenance.run(partial(api.service.audit, body.view)))
    )


async def alive(api: Api, request: Request) -> Response:
    return json_response(Liveness(True))


async def ready(api: Api, request: Request) -> Response:
    ready, reason = await api.quick.run(api.service.ready)
    if not ready:
        raise Unavailable(reason or "queries cannot be answered yet")
    return json_response(Readiness(True, reason))


async def metrics(api: Api, request: Request) -> Response:
    return Response(await api.quick.run(api.service.metrics), media_type=METRICS_MEDIA)


async def openapi(api: Api, request: Request) -> Response:
    return Response(api.openapi, media_type="application/json")


def query_parameters(request: Request) -> dict[str, str]:
    """The query parameters; BadRequest if one is given twice, because only one could be used."""
    pairs = request.query_params.multi_items()
    parameters = dict(pairs)
    if len(parameters) < len(pairs):
        raise BadRequest("a query parameter is given twice")
    return parameters


async def decode_body(api: AccessApi, request: Request, body_type: type[T]) -> T:
    """The decoded body of a request; BadRequest if it does not match the type."""
    limit = api.http.body_bytes_max
    data = (await read_body(request, limit)).plain(limit)
    try:
        return msgspec.json.decode(data or b"{}", type=body_type)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BadRequest(f"the body is not valid for this route: {error}") from error
