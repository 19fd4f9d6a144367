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
from headrace.api.limits import ConcurrencyLimit, UserLimits
from headrace.api.parameter import limit_of
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
    """The context of all handlers. Queries have a thread pool of their own, shared fairly between
    users, so that slow queries do not delay status and readiness. Rebuilds and audits have one, so
    that no query waits for them, and so do new subscriptions, because Spark may have to start for
    their condition.
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
    maintenance: Threads = field(default_factory=lambda: Threads(SLOW_THREADS))
    subscribing: Threads = field(default_factory=lambda: Threads(SLOW_THREADS))


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


async def read_view(api: Api, request: Request) -> Response:
    call = _about_view(api.service.view, request, "order")
    name, keys = call.args
    # A switch to a thread and back takes longer than finding a row in memory.
    plain = keys and not any(call.keywords.values())
    found = api.service.row(name, keys) if plain else None
    return json_response(found or await api.quick.run(call))


async def late(api: Api, request: Request) -> Response:
    return json_response(await api.quick.run(_about_view(api.service.late, request)))


def _about_view(ask: Callable[..., T], request: Request, *options: str) -> partial[T]:
    """A call about the view's rows with given key values, in a range of windows, with options."""
    parameters = query_parameters(request)
    given = {name: parameters.pop(name) for name in options if name in parameters}
    since, until = parameters.pop("from", None), parameters.pop("to", None)
    limit = limit_of(parameters.pop("limit", None))
    name = request.path_params["view"]
    return partial(ask, name, _keys(parameters), since=since, until=until, limit=limit, **given)


def _keys(parameters: dict[str, str]) -> dict[str, str | None] | None:
    """The parameters that are left are keys; `null` names those that are null."""
    nulls = filter(None, parameters.pop("null", "").split(","))
    return {**parameters, **dict.fromkeys(nulls)} or None


async def why(api: Api, request: Request) -> Response:
    found = await _trace(api, request, api.service.why)
    # Whole events reveal more than the view does, so each stream is checked too.
    for stream in {event.stream for event in found.listed} | set(found.as_of):
        caller_of(request).check(
            Operation.READ, object_of("stream", stream), "the events behind it"
        )
    return json_response(found)


async def replay(api: Api, request: Request) -> Response:
    return json_response(await _trace(api, request, api.service.replay))


async def _trace(api: Api, request: Request, ask: Callable[..., T]) -> T:
    parameters = query_parameters(request)
    window, limit = parameters.pop("window", None), limit_of(parameters.pop("limit", None))
    call = partial(ask, request.path_params["view"], _keys(parameters), window=window)
    return await run_query(api, request, partial(call, limit=limit) if limit else call)


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
        raise BadRequest("a query parameter is given twice", hint="use POST /v1/sql with IN (…).")
    return parameters


async def decode_body(api: AccessApi, request: Request, body_type: type[T]) -> T:
    """The decoded body of a request; BadRequest if it does not match the type."""
    limit = api.http.body_bytes_max
    data = (await read_body(request, limit)).plain(limit)
    try:
        return msgspec.json.decode(data or b"{}", type=body_type)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BadRequest(f"the body is not valid for this route: {error}") from error
