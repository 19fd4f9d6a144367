"""The server's ASGI application: its table of routes behind the middleware of the API.
tests/server/test_routes.py runs it on a real server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute

from headrace.access.access import Access
from headrace.api import needs
from headrace.api.app import secured_app
from headrace.api.authentication import JOB
from headrace.api.authorization import AuthorizedEndpoint
from headrace.api.openapi import document
from headrace.api.request_metrics import ROUTE
from headrace.api.route import Route
from headrace.core.errors import Conflict, NotFound
from headrace.server.handlers import ServerApi, authorize_job_routes, forward
from headrace.server.routes import ROUTES
from headrace.server.service import ServerService
from headrace.server.settings import ServerSettings
from headrace.server.stopped_job import StoppedJobHandler

_NAMED = frozenset({"stream", "view"})  # found by name in all jobs


def make_server_app(service: ServerService, settings: ServerSettings, access: Access) -> Starlette:
    """The application of one server, for one event loop."""
    described = msgspec.json.encode(document(ROUTES))
    answers = StoppedJobHandler(settings.http, access, settings.access)
    api = ServerApi(service, access, settings.http, settings.submit, answers, described)
    authorize_job_routes(api)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await service.proxy.aclose()

    routes = [
        StarletteRoute(route.path, _endpoint(api, route), methods=[route.method], name=route.name)
        for route in ROUTES
    ]
    return secured_app(routes, settings.http, lifespan)


def _endpoint(api: ServerApi, route: Route[ServerApi]) -> Callable[[Request], Awaitable[Response]]:
    """The route behind authorization, which checks the caller's permissions in the job of the
    request. Forwarded requests are authorized by the endpoints of the job's routes.
    """
    handler = partial(route.handler, api)
    authorized = AuthorizedEndpoint(api.access, api.quick, route, handler)
    handle = handler if route.handler is forward else authorized.handle

    async def endpoint(request: Request) -> Response:
        request.scope[ROUTE] = route.path
        if (job := await _job_of(api, route, request)) is not None:
            request.scope[JOB] = job
        return await handle(request)

    return endpoint


async def _job_of(api: ServerApi, route: Route[ServerApi], request: Request) -> str | None:
    """The job of a request, by its path or by the name of its stream or view."""
    if "job" in request.path_params:
        return str(request.path_params["job"])
    kind = route.needs.on
    if kind == needs.JOB:
        return request.query_params.get("name", "")
    if kind not in _NAMED:
        return None
    try:
        return await api.quick.run(partial(api.service.job_of, kind, request.path_params[kind]))
    except (NotFound, Conflict):
        return None
