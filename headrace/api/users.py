"""The routes of users, grants, tokens and the audit log.

All but tokens are for those who manage users. One's own tokens are one's own affair, unless the
token that asks carries less than its user has: it could otherwise make itself one that has more.
tests/api/test_users.py checks each route on a real server.
"""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from headrace.access.audit_log import ALLOWED, LISTED, REFUSED, Wanted
from headrace.access.caller import Caller, forbidden
from headrace.access.object import EVERYTHING
from headrace.access.operation import Operation
from headrace.access.token import TokenAsked
from headrace.api.access_shapes import (
    AuditLog,
    Done,
    GrantQuestion,
    Grants,
    Tokens,
    UserQuestion,
    Users,
)
from headrace.api.asking import by, caller
from headrace.api.compression import SECRET
from headrace.api.handlers import Reception, decoded, json_response, limit_of, parameters
from headrace.api.searching import number_of
from headrace.core.errors import BadRequest, NotFound


async def users(api: Reception, request: Request) -> Response:
    return json_response(Users(await api.quick.run(api.access.users)))


async def add_user(api: Reception, request: Request) -> Response:
    said = await decoded(api, request, UserQuestion)
    call = partial(api.access.add_user, said.name, said.role, by(request))
    return json_response(await api.quick.run(call))


async def remove_user(api: Reception, request: Request) -> Response:
    call = partial(api.access.remove_user, request.path_params["user"], by(request))
    await api.quick.run(call)
    return json_response(Done(True))


async def grants(api: Reception, request: Request) -> Response:
    call = partial(api.access.grants, parameters(request).get("user"))
    return json_response(Grants(await api.quick.run(call)))


async def add_grant(api: Reception, request: Request) -> Response:
    said = await decoded(api, request, GrantQuestion)
    call = partial(api.access.grant, said.user, said.may, said.on, by(request))
    return json_response(await api.quick.run(call))


async def remove_grant(api: Reception, request: Request) -> Response:
    said = await decoded(api, request, GrantQuestion)
    call = partial(api.access.take_back, said.user, said.may, said.on, by(request))
    await api.quick.run(call)
    return json_response(Done(True))


async def tokens(api: Reception, request: Request) -> Response:
    """All tokens for those who manage users; for others their own."""
    asks, of = caller(request), parameters(request).get("user")
    if not _manages(asks):
        if of not in (None, asks.user):
            raise _not_own(asks)
        of = asks.user
    return json_response(Tokens(await api.quick.run(partial(api.access.tokens, of))))


async def create_token(api: Reception, request: Request) -> Response:
    asks, said = caller(request), await decoded(api, request, TokenAsked)
    _check_own(asks, said.user or asks.user)
    made = await api.quick.run(partial(api.access.create_token, said, by(request)))
    return json_response(made, SECRET)


async def revoke_token(api: Reception, request: Request) -> Response:
    asks, id = caller(request), request.path_params["token"]
    try:
        owner = (await api.quick.run(partial(api.access.token, id))).user
    except NotFound:
        if not _manages(asks):
            raise _not_own(asks) from None
        raise
    _check_own(asks, owner)
    return json_response(await api.quick.run(partial(api.access.revoke_token, id, by(request))))


async def audit_log(api: Reception, request: Request) -> Response:
    call = partial(api.access.audit_log, _entries_wanted(parameters(request)))
    return json_response(AuditLog(await api.quick.run(call)))


async def verify_audit_log(api: Reception, request: Request) -> Response:
    return json_response(await api.quick.run(api.access.verify_audit_log))


def _entries_wanted(asked: dict[str, str]) -> Wanted:
    decision = asked.get("decision", "")
    if decision not in ("", ALLOWED, REFUSED):
        raise BadRequest(f"decision must be {ALLOWED} or {REFUSED}, not '{decision[:40]}'")
    return Wanted(
        limit=limit_of(asked.get("limit")) or LISTED,
        before=number_of("before", asked.get("before", "0")),
        after=number_of("after", asked["after"]) if "after" in asked else None,
        decision=decision,
        **{name: asked.get(name, "") for name in ("user", "what", "find")},
    )


def _manages(asks: Caller) -> bool:
    return asks.allows(Operation.MANAGE, EVERYTHING)


def _check_own(asks: Caller, owner: str) -> None:
    if not _manages(asks) and (owner != asks.user or asks.narrowed):
        raise _not_own(asks)


def _not_own(asks: Caller) -> Exception:
    return forbidden(asks.user, Operation.MANAGE, EVERYTHING, "these tokens with this token")
