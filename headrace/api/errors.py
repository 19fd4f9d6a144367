"""One form for every error response, and one place where exceptions become responses.

An exception in a handler becomes an `ErrorBody` with the status of its condition. An unexpected
exception becomes InternalError with the request's id; the stack trace goes to the log under the
same id, never to the client. tests/api/test_errors.py checks each kind of error.
"""

from __future__ import annotations

import secrets
from http import HTTPStatus
from itertools import count

import msgspec
import structlog
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

from headrace.api.authentication import REQUEST_ID
from headrace.core.errors import (
    BadRequest,
    HeadraceError,
    InternalError,
    LimitReached,
    MethodNotAllowed,
    NotFound,
    Overfull,
    Overloaded,
    Restarting,
    Unauthenticated,
)

# Headers of a response that bypasses the middleware of security headers.
_PLAIN = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
# A counter after one random prefix: reading random bytes at each request releases the GIL, and
# under load it takes long to get it back.
_process, _numbers = secrets.token_hex(3), count(1)
_log = structlog.get_logger(__name__)


class ErrorBody(msgspec.Struct, frozen=True):
    """An error: its condition and message, and optionally a detail, a hint and an origin."""

    condition: str
    message: str
    detail: str | None
    hint: str | None
    origin: str | None


def error_response(error: HeadraceError) -> Response:
    return Response(
        msgspec.json.encode(error.as_dict()),
        error.http_status,
        headers=_headers(error),
        media_type="application/json",
    )


def error_bytes(error: HeadraceError) -> bytes:
    """A whole response after which the connection is closed, sent outside of the application."""
    answer, status = error_response(error), HTTPStatus(error.http_status)
    headers = [*answer.headers.items(), *_PLAIN.items(), ("Connection", "close")]
    lines = [f"HTTP/1.1 {status} {status.phrase}", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + bytes(answer.body)


def _headers(error: HeadraceError) -> dict[str, str] | None:
    if isinstance(error, Overloaded | Overfull | Restarting):
        return {"Retry-After": str(error.retry_after_s)}
    return {"WWW-Authenticate": "Bearer"} if isinstance(error, Unauthenticated) else None


async def on_error(request: Request, error: Exception) -> Response:
    """Handles HeadraceError."""
    assert isinstance(error, HeadraceError)
    return error_response(error)


async def on_recursion(request: Request, error: Exception) -> Response:
    """Handles text that is nested too deeply for a parser."""
    return error_response(LimitReached("the request is nested too deeply"))


async def on_http_exception(request: Request, error: Exception) -> Response:
    """Handles the router's errors: unknown path, or method not allowed."""
    assert isinstance(error, HTTPException)
    response = error_response(_from_http(request, error))
    response.headers.update(error.headers or {})
    return response


def _from_http(request: Request, error: HTTPException) -> HeadraceError:
    path = request.scope["path"]
    if error.status_code == HTTPStatus.NOT_FOUND:
        return NotFound(f"there is no route {path}", hint="GET /openapi.json lists all routes.")
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = (error.headers or {}).get("Allow", "another method")
        return MethodNotAllowed(f"{path} does not allow {request.method}", hint=f"use {allowed}.")
    return BadRequest(error.detail)


class ErrorMiddleware:
    """Middleware that gives each request an id, and turns unexpected exceptions into responses."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = new_request_id()
        scope[REQUEST_ID] = request_id
        begun = False

        async def send_with_id(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                MutableHeaders(scope=message)["X-Request-Id"] = request_id
            await send(message)

        try:
            # All log lines of this request, also from threads, have the id.
            with bound_contextvars(request_id=request_id):
                await self._app(scope, receive, send_with_id)
        except ClientDisconnect:
            _log.info("client disconnected", request_id=request_id, path=scope["path"])
        except Exception as error:
            log_defect(error, scope)
            if not begun:
                await error_response(internal_error(request_id))(scope, receive, send_with_id)


def new_request_id() -> str:
    return f"{_process}-{next(_numbers):x}"


def log_defect(error: BaseException, scope: Scope) -> None:
    """Log an unexpected error under its request's id."""
    _log.error(
        "request failed",
        exc_info=error,
        request_id=scope[REQUEST_ID],
        method=scope["method"],
        path=scope["path"],
    )


def internal_error(request_id: str) -> InternalError:
    return InternalError(
        "the server had an unexpected error",
        detail=f"request {request_id}",
        hint="see the server's log for this request id.",
    )
