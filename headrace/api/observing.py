"""The routes of an observer: what the project is, how it does, and a connection that says so live.

tests/api/test_observing.py checks each on a real server.
"""

from __future__ import annotations

import asyncio
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from headrace.api.events import EVENTS_MEDIA, EventStream, ring
from headrace.api.handlers import Api, json_response, limit_of, parameters
from headrace.api.observed.about import About
from headrace.api.observed.catalog import Catalog
from headrace.api.observed.epochs import EPOCHS_LISTED, Epochs
from headrace.api.observed.quality import Quality
from headrace.api.observed.system import System
from headrace.api.observed.topology import Topology
from headrace.api.route import VIEW, Parameter, Route
from headrace.api.shapes import Limit
from headrace.compile.lineage import Lineage
from headrace.core.errors import BadRequest
from headrace.serving.feed import Heard


async def topology(api: Api, request: Request) -> Response:
    return json_response(await api.quick.run(api.service.observatory.topology))


async def catalog(api: Api, request: Request) -> Response:
    return json_response(await api.quick.run(api.service.observatory.catalog))


async def lineage(api: Api, request: Request) -> Response:
    return json_response(await api.quick.run(api.service.observatory.lineage))


async def quality(api: Api, request: Request) -> Response:
    return json_response(await api.slow.run(api.service.observatory.quality))


async def epochs(api: Api, request: Request) -> Response:
    asked = parameters(request)
    stream, limit = asked.pop("stream", None), limit_of(asked.pop("limit", None))
    if asked:
        raise BadRequest("epochs have the parameters stream and limit")
    call = partial(api.service.observatory.epochs, stream, limit or EPOCHS_LISTED)
    return json_response(await api.quick.run(call))


async def about(api: Api, request: Request) -> Response:
    call = partial(api.service.observatory.about, request.path_params["view"])
    return json_response(await api.quick.run(call))


async def system(api: Api, request: Request) -> Response:
    return json_response(await api.quick.run(api.service.observatory.system))


async def live(api: Api, request: Request) -> Response:
    topics = [topic for topic in request.query_params.get("topics", "").split(",") if topic]
    if not topics:
        raise BadRequest(
            "the parameter topics is missing", hint="?topics=status,topology,view:NAME"
        )
    # A reader that comes back hears the present state of each topic, so nothing is resumed.
    news = asyncio.Event()
    call = partial(ring, asyncio.get_running_loop(), news)
    hear = partial(api.service.observatory.live, topics, call)
    return EventStream(await api.quick.run(hear), news)


_TOPICS = Parameter("topics", "query", str, "status, topology, alerts, view:NAME, with commas")
_OF_STREAM = Parameter("stream", "query", str, "only epochs and generations of this stream")
_LISTED = Parameter("limit", "query", Limit, "epochs, and generations, wanted at most")

OBSERVING: tuple[Route, ...] = (
    Route(
        "GET", "/v1/topology", "topology",
        "What events flow through, how fast, and what is wrong where.",
        topology, Topology,
    ),
    Route(
        "GET", "/v1/live", "live",
        "The state of several topics, and each change of it, as server-sent events.",
        live, Heard, media=EVENTS_MEDIA, parameters=(_TOPICS,),
    ),
    Route(
        "GET", "/v1/catalog", "catalog",
        "All names of the project, with columns, types and definitions.",
        catalog, Catalog,
    ),
    Route(
        "GET", "/v1/lineage", "lineage",
        "What each column is made of, and what depends on each name.",
        lineage, Lineage,
    ),
    Route(
        "GET", "/v1/quality", "quality",
        "How late, doubled, unreadable or undeclared the newest events of each stream are.",
        quality, Quality,
    ),
    Route(
        "GET", "/v1/epochs", "epochs", "The newest epochs and generations.",
        epochs, Epochs, parameters=(_OF_STREAM, _LISTED),
    ),
    Route(
        "GET", "/v1/views/{view}/about", "about_view", "All that is known of a view.",
        about, About, parameters=(VIEW,),
    ),
    Route(
        "GET", "/v1/system", "system",
        "The process, Spark, the disk, versions and settings.",
        system, System,
    ),
)  # fmt: skip
