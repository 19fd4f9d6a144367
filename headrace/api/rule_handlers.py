"""The handlers that change rules and alerts.

Changes are attributed to the caller.
tests/api/test_rule_handlers.py checks each route on a real server.
"""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from headrace.api.authentication import caller_of
from headrace.api.handlers import Api, decode_body, json_response
from headrace.api.resources.rules import RuleList
from headrace.api.shapes import (
    Acknowledgement,
    MuteRequest,
    Mutes,
    RetryRequest,
    RetryResult,
    RuleText,
    UnmuteRequest,
)
from headrace.serving.rules import DISABLED, ENABLED


async def add_rules(api: Api, request: Request) -> Response:
    body = await decode_body(api, request, RuleText)
    call = partial(api.service.rule_service.add, body.sql, user_of(request), caller_of(request))
    return json_response(RuleList(await api.slow.run(call)))


async def enable(api: Api, request: Request) -> Response:
    return await _switch(api, request, ENABLED)


async def disable(api: Api, request: Request) -> Response:
    return await _switch(api, request, DISABLED)


async def _switch(api: Api, request: Request, state: str) -> Response:
    name = request.path_params["rule"]
    call = partial(api.service.rule_service.switch, name, state, user_of(request))
    return json_response(await api.quick.run(call))


async def remove(api: Api, request: Request) -> Response:
    call = partial(api.service.rule_service.remove, request.path_params["rule"], user_of(request))
    return json_response(await api.slow.run(call))


async def mute(api: Api, request: Request) -> Response:
    body = await decode_body(api, request, MuteRequest)
    name, user = request.path_params["rule"], user_of(request)
    call = partial(api.service.rule_service.mute, name, body.length, body.keys, user)
    return json_response(await api.quick.run(call))


async def unmute(api: Api, request: Request) -> Response:
    body = await decode_body(api, request, UnmuteRequest)
    call = partial(api.service.rule_service.unmute, request.path_params["rule"], body.keys)
    return json_response(Mutes(await api.quick.run(call)))


async def acknowledge(api: Api, request: Request) -> Response:
    body = await decode_body(api, request, Acknowledgement)
    id, user = request.path_params["alert"], user_of(request)
    call = partial(api.service.rule_service.acknowledge, id, user, body.note)
    return json_response(await api.quick.run(call))


async def retry(api: Api, request: Request) -> Response:
    body = await decode_body(api, request, RetryRequest)
    call = partial(api.service.rule_service.retry, body.alert, body.rule)
    return json_response(RetryResult(await api.quick.run(call)))


def user_of(request: Request) -> str:
    """The name of the caller."""
    return caller_of(request).user
