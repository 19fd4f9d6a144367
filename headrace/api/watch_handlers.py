"""The routes of watches. tests/api/test_watches.py checks each on a real server."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from headrace.api.authentication import caller_of
from headrace.api.handlers import Api, decode_body, json_response
from headrace.api.resources.watches import WatchList
from headrace.api.rule_handlers import user_of
from headrace.api.shapes import WatchText


async def add_watches(api: Api, request: Request) -> Response:
    body = await decode_body(api, request, WatchText)
    call = partial(api.service.watch_service.add, body.sql, user_of(request), caller_of(request))
    return json_response(WatchList(await api.slow.run(call)))


async def remove(api: Api, request: Request) -> Response:
    call = partial(api.service.watch_service.remove, request.path_params["watch"], user_of(request))
    return json_response(await api.slow.run(call))
