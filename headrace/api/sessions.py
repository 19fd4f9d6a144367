"""The routes of browser sessions.

A token, or the code of the link that a run prints, is exchanged for a cookie that no script can
read and that other sites cannot make the browser send.
tests/api/test_sessions.py checks each route on a real server.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from headrace.access.audit_log import By
from headrace.access.operation import operations_of
from headrace.api.access_shapes import Allowed, Done, SessionQuestion, SessionReport
from headrace.api.asking import CALLER, address_of, by, caller, cookie_name
from headrace.api.handlers import Reception, decoded, json_response
from headrace.core.errors import BadRequest
from headrace.core.time import SECOND


async def open_session(api: Reception, request: Request) -> Response:
    said = await decoded(api, request, SessionQuestion)
    if (said.token is None) == (said.code is None):
        raise BadRequest("a session is opened with a token or with a code")
    return await api.quick.run(partial(_opened, api, request, said))


def _opened(api: Reception, request: Request, said: SessionQuestion) -> Response:
    if said.token is not None:
        found = api.access.who(said.token, address_of(request))
        user, id = found.user, found.token
    else:
        token = api.access.token_of_code(said.code or "", address_of(request))
        user, id = token.user, token.id
    secret = api.access.open_session(id, By(user, id, by(request).request))
    request.scope[CALLER] = api.access.who_browses(secret)
    response = _report(api, request)
    life_s = api.access.policy.session_life_us // SECOND
    response.set_cookie(cookie_name(request), secret, max_age=life_s, **_kept(request))
    return response


def _kept(request: Request) -> dict[str, Any]:
    """How a browser keeps the cookie, and lets go of it."""
    secure = request.scope["scheme"] == "https"
    return {"secure": secure, "httponly": True, "samesite": "strict"}


async def session(api: Reception, request: Request) -> Response:
    return await api.quick.run(partial(_report, api, request))


def _report(api: Reception, request: Request) -> Response:
    asks = caller(request)
    granted = [
        Allowed(grant.may, sorted(operations_of(grant.may)), grant.on)
        for grant in api.access.grants(asks.user)
    ]
    may: list[str] = sorted(asks.may)
    on = [str(object) for object in asks.on]
    return json_response(SessionReport(asks.user, asks.job, granted, may, on))


async def end_session(api: Reception, request: Request) -> Response:
    secret = request.cookies.get(cookie_name(request))
    if secret:
        await api.quick.run(partial(api.access.end_session, secret, by(request)))
    response = json_response(Done(True))
    response.delete_cookie(cookie_name(request), **_kept(request))
    return response
