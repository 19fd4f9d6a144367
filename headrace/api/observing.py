"""The routes of an observer: what the project is, how it does, and a connection that says so live.

What they list is cut down to what the one who asks may read.
tests/api/test_observing.py checks each on a real server.
"""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from headrace.api.asking import caller
from headrace.api.events import EVENTS_MEDIA
from headrace.api.handlers import Api, json_response, limit_of, parameters, queried
from headrace.api.live import live
from headrace.api.needs import FOR_KNOWN, JOB, reads
from headrace.api.observed.about import About
from headrace.api.observed.catalog import Catalog
from headrace.api.observed.epochs import EPOCHS_LISTED, Epochs
from headrace.api.observed.quality import Quality
from headrace.api.observed.system import System
from headrace.api.observed.topology import Topology
from headrace.api.readable_observed import (
    readable_about,
    readable_catalog,
    readable_epochs,
    readable_lineage,
    readable_quality,
    readable_topology,
)
from headrace.api.route import VIEW, Parameter, Route
from headrace.api.shapes import Limit
from headrace.compile.lineage import Lineage
from headrace.core.errors import BadRequest
from headrace.serving.hearer import Heard


async def topology(api: Api, request: Request) -> Response:
    found = await api.quick.run(api.service.observatory.topology)
    return json_response(readable_topology(found, caller(request)))


async def catalog(api: Api, request: Request) -> Response:
    found = await api.quick.run(api.service.observatory.catalog)
    return json_response(readable_catalog(found, caller(request)))


async def lineage(api: Api, request: Request) -> Response:
    call = partial(readable_lineage, api.service.observatory, caller(request))
    return json_response(await api.quick.run(call))


async def quality(api: Api, request: Request) -> Response:
    found = await queried(api, request, api.service.observatory.quality)
    return json_response(readable_quality(found, caller(request)))


async def epochs(api: Api, request: Request) -> Response:
    asked = parameters(request)
    stream, limit = asked.pop("stream", None), limit_of(asked.pop("limit", None))
    if asked:
        raise BadRequest("epochs have the parameters stream and limit")
    listed = limit or EPOCHS_LISTED
    call = partial(readable_epochs, api.service.observatory, stream, listed, caller(request))
    return json_response(await api.quick.run(call))


async def about(api: Api, request: Request) -> Response:
    view = request.path_params["view"]
    call = partial(readable_about, api.service.observatory, view, caller(request))
    return json_response(await api.quick.run(call))


async def system(api: Api, request: Request) -> Response:
    return json_response(await api.quick.run(api.service.observatory.system))


_TOPICS = Parameter("topics", "query", str, "status, topology, alerts, view:NAME, with commas")
_OF_STREAM = Parameter("stream", "query", str, "only epochs and generations of this stream")
_LISTED = Parameter("limit", "query", Limit, "epochs, and generations, wanted at most")

OBSERVING: tuple[Route[Api], ...] = (
    Route(
        "GET", "/v1/topology", "topology",
        "What events flow through, how fast, and what is wrong where.",
        topology, Topology,
        needs=FOR_KNOWN,
    ),
    Route(
        "GET", "/v1/live", "live",
        "The state of several topics, and each change of it, as server-sent events.",
        live, Heard, media=EVENTS_MEDIA, parameters=(_TOPICS,),
        needs=FOR_KNOWN,
    ),
    Route(
        "GET", "/v1/catalog", "catalog",
        "All names of the project, with columns, types and definitions.",
        catalog, Catalog,
        needs=FOR_KNOWN,
    ),
    Route(
        "GET", "/v1/lineage", "lineage",
        "What each column is made of, and what depends on each name.",
        lineage, Lineage,
        needs=FOR_KNOWN,
    ),
    Route(
        "GET", "/v1/quality", "quality",
        "How late, doubled, unreadable or undeclared the newest events of each stream are.",
        quality, Quality,
        needs=FOR_KNOWN,
    ),
    Route(
        "GET", "/v1/epochs", "epochs", "The newest epochs and generations.",
        epochs, Epochs, parameters=(_OF_STREAM, _LISTED),
        needs=FOR_KNOWN,
    ),
    Route(
        "GET", "/v1/views/{view}/about", "about_view", "All that is known of a view.",
        about, About, parameters=(VIEW,),
        needs=reads("view"),
    ),
    Route(
        "GET", "/v1/system", "system",
        "The process, Spark, the disk, versions and settings.",
        system, System,
        needs=reads(JOB),
    ),
)  # fmt: skip
