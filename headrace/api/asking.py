"""Who asks: by a token, or by the cookie of a session. The door finds it out and keeps it in the
request's scope. tests/api/test_door.py checks both ways.
"""

from __future__ import annotations

from starlette.requests import Request

from headrace.access.access import Access
from headrace.access.audit_log import NOBODY, By
from headrace.access.caller import Caller
from headrace.core.errors import Unauthenticated

CALLER, REQUEST_ID = "headrace.caller", "headrace.request_id"


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
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return access.who(secret.strip())
    session = request.cookies.get(cookie_name(request))
    if session:
        return access.who_browses(session)
    raise Unauthenticated(
        "it is not known who asks: there is no token",
        hint="send the header 'Authorization: Bearer TOKEN'; `headrace token create` makes one.",
    )


def cookie_name(request: Request) -> str:
    """With the port, because browsers keep the cookies of all servers of a machine together."""
    return f"headrace_{request.scope['server'][1]}"
