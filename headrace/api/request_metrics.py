"""Metrics, traces and a debug log line of each HTTP request.

The route label is the path template of the table, never the path of the request: paths are
unbounded, and clients could fill the memory with them. tests/api/test_request_metrics.py checks it.
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any

import structlog
from prometheus_client import Counter, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.api.authentication import CALLER, REQUEST_ID
from headrace.core.meters import HTTP_REQUESTS, HTTP_SECONDS
from headrace.core.spans import span

ROUTE = "headrace.route"  # key of the scope: the path template of the matched route
UNKNOWN = "unknown"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_log = structlog.get_logger()


class RequestMetrics:
    """Middleware that measures each request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, recorded = time.perf_counter(), 500, False  # what an exception becomes

        def record() -> None:
            nonlocal recorded
            if not recorded:
                recorded = True
                record_request(scope, status, time.perf_counter() - began)

        async def send_measured(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            elif not message.get("more_body", False):
                record()  # before the end is sent, so that a client with the response is counted
            await send(message)

        with span("request") as current:
            try:
                await self._app(scope, receive, send_measured)
            finally:
                record()
                if current is not None:
                    _name(current, scope, status)


@lru_cache(maxsize=4096)
def _numbers(method: str, route: str, status: int) -> tuple[Counter, Histogram]:
    """The numbers of a route, which cost more to find than to change."""
    return HTTP_REQUESTS.labels(method, route, status), HTTP_SECONDS.labels(route)


def _name(current: Any, scope: Scope, status: int) -> None:
    """Name a span by its route, as OpenTelemetry's HTTP conventions say."""
    route = scope.get(ROUTE, UNKNOWN)
    current.update_name(f"{scope['method']} {route}")
    current.set_attribute("http.request.method", scope["method"])
    current.set_attribute("http.route", route)
    current.set_attribute("http.response.status_code", status)
    current.set_attribute("headrace.request_id", scope.get(REQUEST_ID, ""))
    if CALLER in scope:
        current.set_attribute("headrace.user", scope[CALLER].user)


def record_request(scope: Scope, status: int, seconds: float) -> None:
    """Count and log a request that is answered."""
    route = scope.get(ROUTE, UNKNOWN)
    method = scope["method"] if scope["method"] in _METHODS else UNKNOWN
    answered, took = _numbers(method, route, status)
    answered.inc()
    took.observe(seconds)
    _log.debug(
        "request answered",
        method=method,
        path=scope["path"],
        status=status,
        milliseconds=round(seconds * 1000, 2),
        **_identity(scope),
    )


def _identity(scope: Scope) -> dict[str, str]:
    """The request and its user, for a log line."""
    caller = {"user": scope[CALLER].user} if CALLER in scope else {}
    return {"request_id": scope.get(REQUEST_ID, ""), **caller}
