"""The routes of watches. tests/api/test_watches.py checks each on a real server."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from headrace.api.asking import caller
from headrace.api.handlers import Api, decoded, json_response, parameters
from headrace.api.readable import readable
from headrace.api.ruling import who
from headrace.api.shapes import Watches, WatchText
from headrace.core.errors import BadRequest
from headrace.serving.watches import ACTIVE, ENDED


async def watches(api: Api, request: Request) -> Response:
    asked = parameters(request)
    state = asked.get("state")
    if set(asked) - {"state"} or state not in {None, ACTIVE, ENDED}:
        raise BadRequest("watches have the parameter state, which is active or ended")
    call = partial(api.service.watchbook.watches, state)
    found = await api.quick.run(call)
    return json_response(Watches(readable("rule", found, caller(request))))


async def watch(api: Api, request: Request) -> Response:
    call = partial(api.service.watchbook.watch, request.path_params["watch"])
    return json_response(await api.quick.run(call))


async def add_watches(api: Api, request: Request) -> Response:
    said = await decoded(api, request, WatchText)
    call = partial(api.service.watchbook.add, said.sql, who(request), caller(request))
    return json_response(Watches(await api.slow.run(call)))


async def remove(api: Api, request: Request) -> Response:
    call = partial(api.service.watchbook.remove, request.path_params["watch"], who(request))
    return json_response(await api.slow.run(call))
