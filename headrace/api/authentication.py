"""Authenticates a request: by a token, by a session cookie, or by a delegated token of a server of
jobs. The caller is stored in the request's scope. tests/api/test_authorization.py checks each.
"""

from __future__ import annotations

from dataclasses import replace

from starlette.datastructures import Headers
from starlette.requests import Request

from headrace.access.access import Access
from headrace.access.audit_log import ANONYMOUS, Actor
from headrace.access.caller import Caller
from headrace.access.delegation import DELEGATED_SCHEME, request_line
from headrace.core.errors import Unauthenticated

CALLER, REQUEST_ID = "headrace.caller", "headrace.request_id"
JOB = "headrace.job"  # the job of a request to a server of jobs
BEARER = "bearer"
_DELEGATED = "headrace.delegated"


def caller_of(request: Request) -> Caller:
    """The authenticated caller of a request."""
    found: Caller = request.scope[CALLER]
    return found


def actor_of(request: Request) -> Actor:
    """The actor of a request, for the audit log."""
    found: Caller | None = request.scope.get(CALLER)
    id = request.scope.get(REQUEST_ID, "")
    return Actor(found.user, found.token, id) if found else Actor(ANONYMOUS, request=id)


def authenticate(access: Access, request: Request) -> Caller:
    """The caller of a request; Unauthenticated if it has no valid token or session."""
    found, job = _authenticate(access, request), request.scope.get(JOB)
    return found if job is None else replace(found, job=job)


def _authenticate(access: Access, request: Request) -> Caller:
    scheme, secret = authorization_of(request.headers)
    if scheme.lower() == BEARER:
        return access.authenticate_token(secret.strip(), client_address(request))
    if scheme == DELEGATED_SCHEME:
        return _authenticate_delegated(access, request, secret)
    session = request.cookies.get(cookie_name(request))
    if session:
        return access.authenticate_session(session, client_address(request))
    raise Unauthenticated(
        "the request has no token",
        hint="send the header 'Authorization: Bearer TOKEN'; `headrace token create` creates one.",
    )


def authorization_of(headers: Headers) -> tuple[str, str]:
    """The scheme and the secret of a request's Authorization."""
    scheme, _, secret = headers.get("authorization", "").partition(" ")
    return scheme, secret


def client_address(request: Request) -> str | None:
    """The address of the client; None if it is not known."""
    return request.client.host if request.client else None


def _authenticate_delegated(access: Access, request: Request, text: str) -> Caller:
    """The caller of a delegated token. It is checked once: the server decides how long a connection
    that was opened with it may last.
    """
    if _DELEGATED not in request.scope:
        line = request_line(request.method, request_target(request))
        request.scope[_DELEGATED] = access.authenticate_delegated(text, line)
    found: Caller = request.scope[_DELEGATED]
    return found


def request_target(request: Request, parts: int = 0) -> bytes:
    """The path and query of a request as they were sent, without the path's first parts. Decoding
    and encoding them again could give another path.
    """
    path = b"/" + b"/".join(request.scope["raw_path"].split(b"/")[1 + parts :])
    query: bytes = request.scope["query_string"]
    return path + b"?" + query if query else path


def cookie_name(request: Request) -> str:
    """The name includes the port, because browsers share cookies between all ports of a host. Over
    TLS the prefix __Host- makes a browser accept the cookie from this host alone.
    """
    prefix = "__Host-" if request.scope["scheme"] == "https" else ""
    return f"{prefix}headrace_{request.scope['server'][1]}"
