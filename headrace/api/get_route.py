"""The route of a GET request type, and the one handler of all of them."""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from headrace.api.authentication import caller_of
from headrace.api.get_request import GetRequest, parameters_of, parse_request, response_type
from headrace.api.handlers import Api, json_response, run_query, run_read
from headrace.api.route import Route


def get_route(request_type: type[GetRequest[Any]]) -> Route[Api]:
    endpoint = request_type.endpoint
    return Route(
        "GET",
        endpoint.path,
        endpoint.name,
        " ".join((request_type.__doc__ or "").split()),
        partial(_answer, request_type),
        response_type(request_type),
        needs=endpoint.needs,
        stored=endpoint.stored,
        parameters=parameters_of(request_type),
        request_type=request_type,
    )


async def _answer(request_type: type[GetRequest[Any]], api: Api, request: Request) -> Response:
    parsed = parse_request(request_type, request.path_params, request.query_params.multi_items())
    call = partial(parsed.readable, api.service, caller_of(request))
    run = run_query if request_type.endpoint.slow else run_read
    return json_response(await run(api, request, call))
