"""The ASGI application: the table of routes behind its middleware.

From the outside in: security headers, request ids and unexpected errors, metrics, the check of host
and origin, compression, the router, and before each handler authorization. So a request that the
origin check refuses has an id too, and every response, also of an unexpected error, has the
headers. tests/api/test_routes.py runs it on a real server.
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
from headrace.api.authorization import authorized_endpoint
from headrace.api.compression import Compression
from headrace.api.direct_sends import DirectSends
from headrace.api.errors import ErrorMiddleware, on_error, on_http_exception, on_recursion
from headrace.api.handlers import Api, send_events
from headrace.api.limits import ConcurrencyLimit, UserLimits, overloaded
from headrace.api.openapi import document
from headrace.api.request_metrics import RequestMetrics
from headrace.api.route import Route
from headrace.api.routes import ROUTES
from headrace.api.security import (
    OriginPolicy,
    ResponseSigner,
    SecurityHeaders,
    TrustedOrigin,
)
from headrace.api.service import LocalService
from headrace.core.errors import HeadraceError
from headrace.define.settings import AccessSettings, HttpSettings


def make_api(
    service: LocalService, http: HttpSettings, access: Access, limits: AccessSettings
) -> Api:
    """The context of the handlers of one service, for one event loop."""
    return Api(
        service,
        http,
        access,
        ConcurrencyLimit(http.waiting_max, overloaded),
        UserLimits(limits),
        openapi=msgspec.json.encode(document(ROUTES)),
    )


def make_app(api: Api) -> Starlette:
    """The application of one service."""
    routes = [_route(api, route) for route in ROUTES]
    return secured_app(routes, api.http, sign=api.access.response_signature_for)


def make_direct_sends(api: Api) -> DirectSends:
    """The short path of the application's busiest route."""
    route = next(route for route in ROUTES if route.name == send_events.__name__)
    return DirectSends(api, route, origin_policy(api.http))


def origin_policy(http: HttpSettings) -> OriginPolicy:
    return OriginPolicy(http.host, http.allowed_hosts)


def secured_app(
    routes: Sequence[BaseRoute],
    http: HttpSettings,
    lifespan: Lifespan[Starlette] | None = None,
    sign: ResponseSigner = lambda text: None,
) -> Starlette:
    """These routes behind the middleware."""
    app = Starlette(
        routes=routes,
        middleware=[
            Middleware(SecurityHeaders, sign=sign),
            Middleware(ErrorMiddleware),
            Middleware(RequestMetrics),
            Middleware(TrustedOrigin, policy=origin_policy(http)),
            Middleware(Compression),
        ],
        exception_handlers={
            HeadraceError: on_error,
            HTTPException: on_http_exception,
            RecursionError: on_recursion,
        },
        lifespan=lifespan,
    )
    # A redirect would turn a mistyped POST into a GET; the answer is 404 instead.
    app.router.redirect_slashes = False
    return app


def _route(api: Api, route: Route[Api]) -> StarletteRoute:
    return StarletteRoute(
        route.path, authorized_endpoint(api, route).handle, methods=[route.method], name=route.name
    )
