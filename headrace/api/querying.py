"""The routes of ad-hoc SQL: ask, stop asking, and how it would be answered.

A plan is refused where the answer would be, and a query is stopped by whoever has asked it.
tests/api/test_querying.py checks each on a real server.
"""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from headrace.api.asking import caller
from headrace.api.body import JSON
from headrace.api.export import CSV, PARQUET, wanted_form
from headrace.api.handlers import Api, decoded, json_response, queried
from headrace.api.needs import FOR_KNOWN, NAMED, reads
from headrace.api.observed.asking import QueryPlan, Stopped
from headrace.api.route import BodyKind, Parameter, Route
from headrace.api.shapes import PlanQuestion, QueryId, SqlQuestion
from headrace.serving.answer import Answer


async def query(api: Api, request: Request) -> Response:
    asked = await decoded(api, request, SqlQuestion)
    ask = partial(api.service.sql, asked.sql, asked.limit, asked.id, caller(request))
    form = wanted_form(request.headers.get("accept", "")) or json_response
    return form(await queried(api, request, ask))


async def cancel(api: Api, request: Request) -> Response:
    id = request.path_params["id"]
    stopped = await api.quick.run(partial(api.service.cancel, id, caller(request)))
    return json_response(Stopped(id, stopped))


async def plan(api: Api, request: Request) -> Response:
    asked = await decoded(api, request, PlanQuestion)
    call = partial(api.service.query_plan, asked.sql, caller(request))
    return json_response(await queried(api, request, call))


QUERYING: tuple[Route[Api], ...] = (
    Route(
        "POST", "/v1/sql", "query",
        "Answer an ad-hoc SQL query; as CSV or Parquet where Accept asks for it.",
        query, Answer, others=(CSV, PARQUET), bodies=(BodyKind(JSON, SqlQuestion),),
        needs=reads(NAMED),
    ),
    Route(
        "POST", "/v1/sql/plan", "query_plan", "How an ad-hoc SQL query would be answered.",
        plan, QueryPlan, bodies=(BodyKind(JSON, PlanQuestion),),
        needs=reads(NAMED),
    ),
    Route(
        "POST", "/v1/sql/{id}/cancel", "cancel_query",
        "Stop an ad-hoc SQL query that runs: a query of the one who asks.",
        cancel, Stopped, parameters=(Parameter("id", "path", QueryId, "its id"),),
        needs=FOR_KNOWN,
    ),
)  # fmt: skip
