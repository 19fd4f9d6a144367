"""The server's ASGI application: its table of routes behind the guard of the API.
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
from headrace.api.app import guarded_app
from headrace.api.asking import JOB
from headrace.api.door import Door
from headrace.api.measured import ROUTE
from headrace.api.openapi import document
from headrace.api.route import Route
from headrace.core.errors import Conflict, NotFound
from headrace.server.handlers import Desk, open_job_doors, pass_on
from headrace.server.office import Office
from headrace.server.resting import Answers
from headrace.server.routes import ROUTES
from headrace.server.settings import ServerSettings

_NAMED = frozenset({"stream", "view"})  # what is found by name, whichever job it is of


def make_server_app(office: Office, settings: ServerSettings, access: Access) -> Starlette:
    """The application of one server, for one event loop."""
    described = msgspec.json.encode(document(ROUTES))
    answers = Answers(settings.http, access, settings.access)
    desk = Desk(office, access, settings.http, settings.submit, answers, described)
    open_job_doors(desk)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await office.line.aclose()

    routes = [
        StarletteRoute(route.path, _endpoint(desk, route), methods=[route.method], name=route.name)
        for route in ROUTES
    ]
    return guarded_app(routes, settings.http, lifespan)


def _endpoint(desk: Desk, route: Route[Desk]) -> Callable[[Request], Awaitable[Response]]:
    """The route behind its door, which asks what the caller may do in the job that it is about.
    What is passed on goes through the doors of the job's routes.
    """
    handler = partial(route.handler, desk)
    door = Door(desk.access, desk.quick, route, handler)
    answer = handler if route.handler is pass_on else door.answer

    async def endpoint(request: Request) -> Response:
        request.scope[ROUTE] = route.path
        if (job := await _job_of(desk, route, request)) is not None:
            request.scope[JOB] = job
        return await answer(request)

    return endpoint


async def _job_of(desk: Desk, route: Route[Desk], request: Request) -> str | None:
    """The job that a request is about, if one is said or has the name that is."""
    if "job" in request.path_params:
        return str(request.path_params["job"])
    kind = route.needs.on
    if kind == needs.JOB:
        return request.query_params.get("name", "")
    if kind not in _NAMED:
        return None
    try:
        return await desk.quick.run(partial(desk.office.job_of, kind, request.path_params[kind]))
    except (NotFound, Conflict):
        return None
