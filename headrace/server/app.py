"""The server's ASGI application: its table of routes behind the guard of the API.
tests/server/test_routes.py runs it on a real server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headrace.api.app import guarded_app
from headrace.api.openapi import document
from headrace.server.handlers import Desk
from headrace.server.office import Office
from headrace.server.resting import Answers
from headrace.server.routes import ROUTES, ServerRoute
from headrace.server.settings import ServerSettings


def make_server_app(office: Office, settings: ServerSettings) -> Starlette:
    """The application of one server, for one event loop."""
    described = msgspec.json.encode(document(ROUTES))
    desk = Desk(office, settings.submit, Answers(settings.http), described)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await office.line.aclose()

    routes = [
        Route(route.path, _endpoint(desk, route), methods=[route.method], name=route.name)
        for route in ROUTES
    ]
    return guarded_app(routes, settings.http.host, lifespan)


def _endpoint(desk: Desk, route: ServerRoute) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return await route.handler(desk, request)

    return endpoint
