"""Who asks: by a token, by the cookie of a session, or by the pass of a server of jobs. The door
finds it out and keeps it in the request's scope. tests/api/test_door.py checks all ways.
"""

from __future__ import annotations

from dataclasses import replace

from starlette.requests import Request

from headrace.access.access import Access
from headrace.access.audit_log import NOBODY, By
from headrace.access.caller import Caller
from headrace.access.passing import SCHEME, asked_for
from headrace.core.errors import Unauthenticated

CALLER, REQUEST_ID = "headrace.caller", "headrace.request_id"
JOB = "headrace.job"  # the job that is asked, where one server has several
_PASSED = "headrace.passed"


def caller(request: Request) -> Caller:
    """The caller whom the door has let in."""
    found: Caller = request.scope[CALLER]
    return found


def by(request: Request) -> By:
    """Who makes a change, for the audit log."""
    found: Caller | None = request.scope.get(CALLER)
    id = request.scope.get(REQUEST_ID, "")
    return By(found.user, found.token, id) if found else By(NOBODY, request=id)


def recognised(access: Access, request: Request) -> Caller:
    """Who asks; Unauthenticated if that cannot be known."""
    found, job = _known(access, request), request.scope.get(JOB)
    return found if job is None else replace(found, job=job)


def _known(access: Access, request: Request) -> Caller:
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return access.who(secret.strip(), address_of(request))
    if scheme == SCHEME:
        return _passed(access, request, secret)
    session = request.cookies.get(cookie_name(request))
    if session:
        return access.who_browses(session, address_of(request))
    raise Unauthenticated(
        "it is not known who asks: there is no token",
        hint="send the header 'Authorization: Bearer TOKEN'; `headrace token create` makes one.",
    )


def address_of(request: Request) -> str | None:
    """From where the request comes; None where that is no address."""
    return request.client.host if request.client else None


def _passed(access: Access, request: Request, text: str) -> Caller:
    """Who asks the server of this job. A pass is looked at once: how long a connection that it has
    opened may last is the server's question.
    """
    if _PASSED not in request.scope:
        asked = asked_for(request.method, target_of(request))
        request.scope[_PASSED] = access.who_was_passed(text, asked)
    found: Caller = request.scope[_PASSED]
    return found


def target_of(request: Request, parts: int = 0) -> bytes:
    """The path and query of a request as they were sent, without its path's first parts. What was
    decoded and encoded again could be another path.
    """
    path = b"/" + b"/".join(request.scope["raw_path"].split(b"/")[1 + parts :])
    query: bytes = request.scope["query_string"]
    return path + b"?" + query if query else path


def cookie_name(request: Request) -> str:
    """With the port, because browsers keep the cookies of all servers of a machine together. Over
    TLS a browser takes it from this very host alone; without, there is no such prefix.
    """
    prefix = "__Host-" if request.scope["scheme"] == "https" else ""
    return f"{prefix}headrace_{request.scope['server'][1]}"
