"""The routes of rules and alerts.

Who changes something is the user who asks. Lists are cut down to what one may read.
tests/api/test_ruling.py checks each route on a real server.
"""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from headrace.api.asking import caller
from headrace.api.handlers import Api, decoded, json_response, limit_of, parameters
from headrace.api.readable import readable, readable_alerts
from headrace.api.shapes import (
    Acknowledgement,
    MuteQuestion,
    Mutes,
    Retried,
    RetryQuestion,
    RuleHistory,
    Rules,
    RuleText,
    UnmuteQuestion,
)
from headrace.core.errors import BadRequest
from headrace.serving.ledger import LISTED, Wanted
from headrace.serving.rules import DISABLED, ENABLED

_ASKED = {"rule", "state", "missed", "withdrawn", "limit", "each", "before"}


async def rules(api: Api, request: Request) -> Response:
    found = await api.quick.run(api.service.rulebook.rules)
    return json_response(Rules(readable("rule", found, caller(request))))


async def add_rules(api: Api, request: Request) -> Response:
    said = await decoded(api, request, RuleText)
    call = partial(api.service.rulebook.add, said.sql, who(request), caller(request))
    return json_response(Rules(await api.slow.run(call)))


async def rule(api: Api, request: Request) -> Response:
    call = partial(api.service.rulebook.rule, request.path_params["rule"])
    return json_response(await api.quick.run(call))


async def history(api: Api, request: Request) -> Response:
    call = partial(api.service.rulebook.history, request.path_params["rule"])
    return json_response(RuleHistory(await api.quick.run(call)))


async def enable(api: Api, request: Request) -> Response:
    return await _switch(api, request, ENABLED)


async def disable(api: Api, request: Request) -> Response:
    return await _switch(api, request, DISABLED)


async def _switch(api: Api, request: Request, state: str) -> Response:
    name = request.path_params["rule"]
    call = partial(api.service.rulebook.switch, name, state, who(request))
    return json_response(await api.quick.run(call))


async def remove(api: Api, request: Request) -> Response:
    call = partial(api.service.rulebook.remove, request.path_params["rule"], who(request))
    return json_response(await api.slow.run(call))


async def mute(api: Api, request: Request) -> Response:
    said = await decoded(api, request, MuteQuestion)
    name, by = request.path_params["rule"], who(request)
    call = partial(api.service.rulebook.mute, name, said.length, said.keys, by)
    return json_response(await api.quick.run(call))


async def unmute(api: Api, request: Request) -> Response:
    said = await decoded(api, request, UnmuteQuestion)
    call = partial(api.service.rulebook.unmute, request.path_params["rule"], said.keys)
    return json_response(Mutes(await api.quick.run(call)))


async def alerts(api: Api, request: Request) -> Response:
    asked = parameters(request)
    if unknown := set(asked) - _ASKED:
        raise BadRequest(f"alerts have no parameter '{min(unknown)[:40]}'")
    wanted = Wanted(
        asked.get("rule"),
        asked.get("state"),
        _flag(asked, "missed"),
        _flag(asked, "withdrawn"),
        limit_of(asked.get("limit")) or LISTED,
        limit_of(asked.get("each")),
        _number(asked.get("before")),
    )
    call = partial(readable_alerts, api.service, wanted, caller(request))
    return json_response(await api.quick.run(call))


async def alert(api: Api, request: Request) -> Response:
    call = partial(api.service.rulebook.alert, request.path_params["alert"])
    return json_response(await api.quick.run(call))


async def acknowledge(api: Api, request: Request) -> Response:
    said = await decoded(api, request, Acknowledgement)
    id, by = request.path_params["alert"], who(request)
    call = partial(api.service.rulebook.acknowledge, id, by, said.note)
    return json_response(await api.quick.run(call))


async def retry(api: Api, request: Request) -> Response:
    said = await decoded(api, request, RetryQuestion)
    call = partial(api.service.rulebook.retry, said.alert, said.rule)
    return json_response(Retried(await api.quick.run(call)))


def _number(text: str | None) -> int | None:
    if text is not None and not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise BadRequest(f"before is the number of an alert, not '{text[:40]}'")
    return None if text is None else int(text)


def _flag(asked: dict[str, str], name: str) -> bool:
    text = asked.get(name, "false")
    if text not in {"true", "false"}:
        raise BadRequest(f"{name} is true or false, not '{text[:40]}'")
    return text == "true"


def who(request: Request) -> str:
    """The user who asks."""
    return caller(request).user
