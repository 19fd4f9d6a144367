"""The handlers of users, grants, tokens and the audit log.

All but tokens are for user managers. Users manage their own tokens, but not with a token of
narrower scope, which could otherwise create one with more permissions than it has.
tests/api/test_users.py checks each route on a real server.
"""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from headrace.access.audit_log import ALLOWED, LISTED, REFUSED, AuditLogFilter
from headrace.access.caller import Caller, forbidden
from headrace.access.object import EVERYTHING
from headrace.access.operation import Operation
from headrace.access.token import TokenRequest
from headrace.api.access_shapes import (
    GrantList,
    GrantRequest,
    OkResponse,
    TokenList,
    UserList,
    UserRequest,
)
from headrace.api.authentication import actor_of, caller_of
from headrace.api.compression import SECRET
from headrace.api.handlers import AccessApi, decode_body, json_response, query_parameters
from headrace.api.parameter import limit_of, number_of
from headrace.core.errors import BadRequest, NotFound


async def users(api: AccessApi, request: Request) -> Response:
    return json_response(UserList(await api.quick.run(api.access.users)))


async def add_user(api: AccessApi, request: Request) -> Response:
    body = await decode_body(api, request, UserRequest)
    call = partial(api.access.add_user, body.name, body.role, actor_of(request))
    return json_response(await api.quick.run(call))


async def remove_user(api: AccessApi, request: Request) -> Response:
    call = partial(api.access.remove_user, request.path_params["user"], actor_of(request))
    await api.quick.run(call)
    return json_response(OkResponse(True))


async def grants(api: AccessApi, request: Request) -> Response:
    call = partial(api.access.grants, query_parameters(request).get("user"))
    return json_response(GrantList(await api.quick.run(call)))


async def add_grant(api: AccessApi, request: Request) -> Response:
    body = await decode_body(api, request, GrantRequest)
    call = partial(api.access.add_grant, body.user, body.may, body.on, actor_of(request))
    return json_response(await api.quick.run(call))


async def remove_grant(api: AccessApi, request: Request) -> Response:
    body = await decode_body(api, request, GrantRequest)
    call = partial(api.access.remove_grant, body.user, body.may, body.on, actor_of(request))
    await api.quick.run(call)
    return json_response(OkResponse(True))


async def tokens(api: AccessApi, request: Request) -> Response:
    """All tokens for user managers; for others their own."""
    caller, of = caller_of(request), query_parameters(request).get("user")
    if not _manages(caller):
        if of not in (None, caller.user):
            raise _not_own(caller)
        of = caller.user
    return json_response(TokenList(await api.quick.run(partial(api.access.tokens, of))))


async def create_token(api: AccessApi, request: Request) -> Response:
    caller, body = caller_of(request), await decode_body(api, request, TokenRequest)
    _check_own(caller, body.user or caller.user)
    made = await api.quick.run(partial(api.access.create_token, body, actor_of(request)))
    return json_response(made, SECRET)


async def revoke_token(api: AccessApi, request: Request) -> Response:
    caller, id = caller_of(request), request.path_params["token"]
    try:
        owner = (await api.quick.run(partial(api.access.token, id))).user
    except NotFound:
        if not _manages(caller):
            raise _not_own(caller) from None
        raise
    _check_own(caller, owner)
    return json_response(
        await api.quick.run(partial(api.access.revoke_token, id, actor_of(request)))
    )


async def audit_log(api: AccessApi, request: Request) -> Response:
    call = partial(api.access.audit_log, _audit_log_filter(query_parameters(request)))
    return json_response(await api.quick.run(call))


async def verify_audit_log(api: AccessApi, request: Request) -> Response:
    return json_response(await api.quick.run(api.access.verify_audit_log))


def _audit_log_filter(parameters: dict[str, str]) -> AuditLogFilter:
    decision = parameters.get("decision", "")
    if decision not in ("", ALLOWED, REFUSED):
        raise BadRequest(f"decision must be {ALLOWED} or {REFUSED}, not '{decision[:40]}'")
    return AuditLogFilter(
        limit=limit_of(parameters.get("limit")) or LISTED,
        before=number_of("before", parameters.get("before", "0")),
        after=number_of("after", parameters["after"]) if "after" in parameters else None,
        decision=decision,
        **{name: parameters.get(name, "") for name in ("user", "what", "find")},
    )


def _manages(caller: Caller) -> bool:
    return caller.allows(Operation.MANAGE, EVERYTHING)


def _check_own(caller: Caller, owner: str) -> None:
    if not _manages(caller) and (owner != caller.user or caller.scoped):
        raise _not_own(caller)


def _not_own(caller: Caller) -> Exception:
    return forbidden(caller.user, Operation.MANAGE, EVERYTHING, "these tokens with this token")
