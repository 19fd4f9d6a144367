"""The handlers of rules and alerts.

Changes are attributed to the caller. Lists contain only what the caller may read.
tests/api/test_rule_handlers.py checks each route on a real server.
"""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from headrace.api.authentication import caller_of
from headrace.api.handlers import Api, decode_body, json_response, query_parameters
from headrace.api.parameter import limit_of
from headrace.api.readable import readable_alerts
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
from headrace.core.errors import BadRequest
from headrace.serving.alerts import LISTED, AlertFilter
from headrace.serving.rules import DISABLED, ENABLED

_PARAMETERS = {"rule", "state", "missed", "withdrawn", "limit", "each", "before"}


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


async def alerts(api: Api, request: Request) -> Response:
    parameters = query_parameters(request)
    if unknown := set(parameters) - _PARAMETERS:
        raise BadRequest(f"alerts have no parameter '{min(unknown)[:40]}'")
    wanted = AlertFilter(
        parameters.get("rule"),
        parameters.get("state"),
        _flag(parameters, "missed"),
        _flag(parameters, "withdrawn"),
        limit_of(parameters.get("limit")) or LISTED,
        limit_of(parameters.get("each")),
        _number(parameters.get("before")),
    )
    call = partial(readable_alerts, api.service, wanted, caller_of(request))
    return json_response(await api.quick.run(call))


async def alert(api: Api, request: Request) -> Response:
    call = partial(api.service.rule_service.alert, request.path_params["alert"])
    return json_response(await api.quick.run(call))


async def acknowledge(api: Api, request: Request) -> Response:
    body = await decode_body(api, request, Acknowledgement)
    id, user = request.path_params["alert"], user_of(request)
    call = partial(api.service.rule_service.acknowledge, id, user, body.note)
    return json_response(await api.quick.run(call))


async def retry(api: Api, request: Request) -> Response:
    body = await decode_body(api, request, RetryRequest)
    call = partial(api.service.rule_service.retry, body.alert, body.rule)
    return json_response(RetryResult(await api.quick.run(call)))


def _number(text: str | None) -> int | None:
    if text is not None and not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise BadRequest(f"before must be the number of an alert, not '{text[:40]}'")
    return None if text is None else int(text)


def _flag(parameters: dict[str, str], name: str) -> bool:
    text = parameters.get(name, "false")
    if text not in {"true", "false"}:
        raise BadRequest(f"{name} must be true or false, not '{text[:40]}'")
    return text == "true"


def user_of(request: Request) -> str:
    """The name of the caller."""
    return caller_of(request).user
