"""The ASGI application: the table of routes behind the guard.

From the outside in: the headers of safety, an id and a last resort for each request, the guard, the
router. So what the guard refuses has an id too, and every answer, a defect's included, the headers.
tests/api/test_routes.py runs it on a real server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute

from headrace.api.errors import Shield, on_error, on_http_exception
from headrace.api.guard import Guard, SafeHeaders
from headrace.api.handlers import Api, Gate
from headrace.api.openapi import document
from headrace.api.route import Route
from headrace.api.routes import ROUTES
from headrace.api.service import Service
from headrace.core.errors import HeadraceError
from headrace.define.settings import HttpSettings


def make_app(service: Service, http: HttpSettings) -> Starlette:
    """The application of one service, for one event loop."""
    api = Api(
        service,
        http,
        Gate(http.waiting_max),
        openapi=msgspec.json.encode(document(ROUTES)),
    )
    app = Starlette(
        routes=[_route(api, route) for route in ROUTES],
        middleware=[
            Middleware(SafeHeaders),
            Middleware(Shield),
            Middleware(Guard, host=http.host),
        ],
        exception_handlers={HeadraceError: on_error, HTTPException: on_http_exception},
    )
    # A redirect would turn a mistyped POST into a GET; it is told that there is no such route.
    app.router.redirect_slashes = False
    return app


def _route(api: Api, route: Route) -> StarletteRoute:
    return StarletteRoute(
        route.path, _endpoint(api, route), methods=[route.method], name=route.name
    )


def _endpoint(api: Api, route: Route) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return await route.handler(api, request)

    return endpoint
