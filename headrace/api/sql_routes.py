"""The routes of ad-hoc SQL: run a query, cancel it, and show its plan.

A plan needs the permissions of the query, and a query is cancelled by its own user.
tests/api/test_sql_routes.py checks each on a real server.
"""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from headrace.api.authentication import caller_of
from headrace.api.body import JSON
from headrace.api.export import CSV, PARQUET, response_format
from headrace.api.handlers import Api, decode_body, json_response, run_query
from headrace.api.needs import ANY_USER, NAMED, reads
from headrace.api.parameter import Parameter
from headrace.api.resources.query import QueryCancellation, QueryPlan
from headrace.api.route import BodyKind, Route
from headrace.api.shapes import PlanRequest, QueryId, SqlRequest
from headrace.serving.answer import Answer


async def query(api: Api, request: Request) -> Response:
    body = await decode_body(api, request, SqlRequest)
    ask = partial(api.service.sql, body.sql, body.limit, body.id, caller_of(request))
    form = response_format(request.headers.get("accept", "")) or json_response
    return form(await run_query(api, request, ask))


async def cancel(api: Api, request: Request) -> Response:
    id = request.path_params["id"]
    stopped = await api.quick.run(partial(api.service.cancel, id, caller_of(request)))
    return json_response(QueryCancellation(id, stopped))


async def plan(api: Api, request: Request) -> Response:
    body = await decode_body(api, request, PlanRequest)
    call = partial(api.service.query_plan, body.sql, caller_of(request))
    return json_response(await run_query(api, request, call))


SQL_ROUTES: tuple[Route[Api], ...] = (
    Route(
        "POST", "/v1/sql", "query",
        "Run an ad-hoc SQL query; the result is JSON, or CSV or Parquet by Accept.",
        query, Answer, others=(CSV, PARQUET), bodies=(BodyKind(JSON, SqlRequest),),
        needs=reads(NAMED), stored=True,
    ),
    Route(
        "POST", "/v1/sql/plan", "query_plan", "The plan of an ad-hoc SQL query.",
        plan, QueryPlan, bodies=(BodyKind(JSON, PlanRequest),),
        needs=reads(NAMED),
    ),
    Route(
        "POST", "/v1/sql/{id}/cancel", "cancel_query",
        "Cancel a running ad-hoc SQL query of the caller.",
        cancel, QueryCancellation, parameters=(Parameter("id", "path", QueryId, "its id"),),
        needs=ANY_USER,
    ),
)  # fmt: skip
