"""The handlers of browser sessions.

A token, or the code of the link that a run prints, is exchanged for a cookie that no script can
read (HttpOnly) and that is not sent with requests of other sites (SameSite).
tests/api/test_sessions.py checks each route on a real server.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from headrace.access.audit_log import Actor
from headrace.access.operation import operations_of
from headrace.api.access_shapes import OkResponse, SessionGrant, SessionReport, SessionRequest
from headrace.api.authentication import CALLER, actor_of, caller_of, client_address, cookie_name
from headrace.api.handlers import AccessApi, decode_body, json_response
from headrace.core.errors import BadRequest
from headrace.core.time import SECOND


async def open_session(api: AccessApi, request: Request) -> Response:
    body = await decode_body(api, request, SessionRequest)
    if (body.token is None) == (body.code is None):
        raise BadRequest("a session requires either a token or a code")
    return await api.quick.run(partial(_open, api, request, body))


def _open(api: AccessApi, request: Request, body: SessionRequest) -> Response:
    if body.token is not None:
        found = api.access.authenticate_token(body.token, client_address(request))
        user, id = found.user, found.token
    else:
        token = api.access.token_of_code(body.code or "", client_address(request))
        user, id = token.user, token.id
    secret = api.access.open_session(id, Actor(user, id, actor_of(request).request))
    request.scope[CALLER] = api.access.authenticate_session(secret)
    response = _report(api, request)
    life_s = api.access.policy.session_life_us // SECOND
    response.set_cookie(cookie_name(request), secret, max_age=life_s, **_cookie_options(request))
    return response


def _cookie_options(request: Request) -> dict[str, Any]:
    """The attributes of the cookie, when it is set and deleted."""
    secure = request.scope["scheme"] == "https"
    return {"secure": secure, "httponly": True, "samesite": "strict"}


async def session(api: AccessApi, request: Request) -> Response:
    return await api.quick.run(partial(_report, api, request))


def _report(api: AccessApi, request: Request) -> Response:
    caller = caller_of(request)
    granted = [
        SessionGrant(grant.may, sorted(operations_of(grant.may)), grant.on)
        for grant in api.access.grants(caller.user)
    ]
    may: list[str] = sorted(caller.may)
    on = [str(object) for object in caller.on]
    return json_response(SessionReport(caller.user, caller.job, granted, may, on))


async def end_session(api: AccessApi, request: Request) -> Response:
    secret = request.cookies.get(cookie_name(request))
    if secret:
        await api.quick.run(partial(api.access.end_session, secret, actor_of(request)))
    response = json_response(OkResponse(True))
    response.delete_cookie(cookie_name(request), **_cookie_options(request))
    return response
