"""The ASGI application: the table of routes behind the guard.

From the outside in: the headers of safety, an id and a last resort for each request, the guard,
compression, the router, and before each handler the door. So what the guard refuses has an id too,
and every answer, a defect's included, the headers.
tests/api/test_routes.py runs it on a real server.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute
from starlette.routing import Route as StarletteRoute
from starlette.types import Lifespan

from headrace.access.access import Access
from headrace.api.compression import Compression
from headrace.api.door import door
from headrace.api.errors import Shield, on_error, on_http_exception, on_recursion
from headrace.api.guard import Guard, Prove, SafeHeaders
from headrace.api.handlers import Api
from headrace.api.limits import Gate, Limits, overloaded
from headrace.api.measured import Measured
from headrace.api.openapi import document
from headrace.api.route import Route
from headrace.api.routes import ROUTES
from headrace.api.service import Service
from headrace.core.errors import HeadraceError
from headrace.define.settings import AccessSettings, HttpSettings


def make_app(
    service: Service, http: HttpSettings, access: Access, limits: AccessSettings
) -> Starlette:
    """The application of one service, for one event loop."""
    api = Api(
        service,
        http,
        access,
        Gate(http.waiting_max, overloaded),
        Limits(limits),
        openapi=msgspec.json.encode(document(ROUTES)),
    )
    return guarded_app([_route(api, route) for route in ROUTES], http, prove=access.proof)


def guarded_app(
    routes: Sequence[BaseRoute],
    http: HttpSettings,
    lifespan: Lifespan[Starlette] | None = None,
    prove: Prove = lambda text: None,
) -> Starlette:
    """These routes behind the guard."""
    app = Starlette(
        routes=routes,
        middleware=[
            Middleware(SafeHeaders, prove=prove),
            Middleware(Shield),
            Middleware(Measured),
            Middleware(Guard, host=http.host, allowed=http.allowed_hosts),
            Middleware(Compression),
        ],
        exception_handlers={
            HeadraceError: on_error,
            HTTPException: on_http_exception,
            RecursionError: on_recursion,
        },
        lifespan=lifespan,
    )
    # A redirect would turn a mistyped POST into a GET; it is told that there is no such route.
    app.router.redirect_slashes = False
    return app


def _route(api: Api, route: Route[Api]) -> StarletteRoute:
    return StarletteRoute(
        route.path, door(api, route).answer, methods=[route.method], name=route.name
    )
