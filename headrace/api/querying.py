"""The routes of ad-hoc SQL: ask, stop asking, and how it would be answered.

tests/api/test_querying.py checks each on a real server.
"""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from headrace.api.body import JSON
from headrace.api.export import wanted_form
from headrace.api.handlers import Api, decoded, json_response
from headrace.api.observed.asking import QueryPlan, Stopped
from headrace.api.route import BodyKind, Parameter, Route
from headrace.api.shapes import PlanQuestion, QueryId, SqlQuestion
from headrace.serving.answer import Answer


async def query(api: Api, request: Request) -> Response:
    asked = await decoded(api, request, SqlQuestion)
    ask = partial(api.service.sql, asked.sql, asked.limit, asked.id)
    form = wanted_form(request.headers.get("accept", "")) or json_response
    return form(await api.slow.run(ask))


async def cancel(api: Api, request: Request) -> Response:
    id = request.path_params["id"]
    return json_response(Stopped(id, await api.quick.run(partial(api.service.cancel, id))))


async def plan(api: Api, request: Request) -> Response:
    asked = await decoded(api, request, PlanQuestion)
    return json_response(await api.slow.run(partial(api.service.query_plan, asked.sql)))


QUERYING: tuple[Route, ...] = (
    Route(
        "POST", "/v1/sql", "query", 
        "Answer an ad-hoc SQL query; as CSV or Parquet where Accept asks for it.",
        query, Answer, bodies=(BodyKind(JSON, SqlQuestion),),
    ),
    Route(
        "POST", "/v1/sql/plan", "query_plan", "How an ad-hoc SQL query would be answered.",
        plan, QueryPlan, bodies=(BodyKind(JSON, PlanQuestion),),
    ),
    Route(
        "POST", "/v1/sql/{id}/cancel", "cancel_query", "Stop an ad-hoc SQL query that runs.",
        cancel, Stopped, parameters=(Parameter("id", "path", QueryId, "its id"),),
    ),
)  # fmt: skip
