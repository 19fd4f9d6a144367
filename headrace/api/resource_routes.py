"""The routes of the read-only resources, and of live updates.

tests/api/test_resources.py checks each on a real server.
"""

from __future__ import annotations

from headrace.api.events import EVENTS_MEDIA
from headrace.api.get_route import get_route
from headrace.api.handlers import Api
from headrace.api.live import live
from headrace.api.needs import ANY_USER
from headrace.api.parameter import Parameter
from headrace.api.resources.catalog import CatalogRequest
from headrace.api.resources.epochs import EpochsRequest
from headrace.api.resources.events import EventRequest, EventsRequest
from headrace.api.resources.lineage import LineageRequest
from headrace.api.resources.quality import QualityRequest
from headrace.api.resources.system import SystemRequest
from headrace.api.resources.topology import TopologyRequest
from headrace.api.resources.view_detail import ViewDetailRequest
from headrace.api.route import Route
from headrace.serving.subscriber import SubscriptionEvent

_TOPICS = Parameter("topics", "query", str, "status, topology, alerts, view:NAME, with commas")

RESOURCE_ROUTES: tuple[Route[Api], ...] = (
    get_route(TopologyRequest),
    Route(
        "GET", "/v1/live", "live",
        "The state of several topics, and each change of it, as server-sent events.",
        live, SubscriptionEvent, media=EVENTS_MEDIA, parameters=(_TOPICS,),
        needs=ANY_USER,
    ),
    get_route(CatalogRequest),
    get_route(LineageRequest),
    get_route(QualityRequest),
    get_route(EpochsRequest),
    get_route(ViewDetailRequest),
    get_route(SystemRequest),
    get_route(EventsRequest),
    get_route(EventRequest),
)  # fmt: skip
