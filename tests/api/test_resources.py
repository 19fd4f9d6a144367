"""What an observer asks goes there and back, and what is live comes on one connection."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from headrace.api.client import RemoteService
from headrace.api.get_request import GetRequest
from headrace.api.resources.alerts import AlertRequest, AlertsRequest
from headrace.api.resources.catalog import CatalogRequest
from headrace.api.resources.dead_letters import DeadLettersRequest
from headrace.api.resources.epochs import EpochsRequest
from headrace.api.resources.events import EventRequest, EventsRequest
from headrace.api.resources.lineage import LineageRequest
from headrace.api.resources.quality import QualityRequest
from headrace.api.resources.rows import LateRequest, ReplayRequest, ViewRequest, WhyRequest
from headrace.api.resources.rules import (
    RuleList,
    RuleRequest,
    RulesRequest,
    RuleVersions,
    RuleVersionsRequest,
)
from headrace.api.resources.status import StatusRequest
from headrace.api.resources.system import SystemRequest
from headrace.api.resources.topology import TopologyRequest
from headrace.api.resources.view_detail import ViewDetailRequest
from headrace.api.resources.watches import WatchesRequest, WatchList, WatchRequest
from headrace.api.routes import GET_REQUESTS

from .conftest import (
    ABOUT,
    ALERT,
    ANSWER,
    CATALOG,
    DEAD_LETTERS,
    EPOCHS,
    FOUND,
    FOUND_ALERTS,
    LATENESS,
    LINEAGE,
    QUALITY,
    REPLAY,
    RULE,
    STATUS,
    SYSTEM,
    TOPOLOGY,
    TRACE,
    VERSION,
    WATCH,
    WHY,
    Shop,
    condition,
)

WANTED = EventsRequest(
    "clicks", 5, "3,4", 1, 2, "e 1", "a&b", "2026-01-01", "2026-01-02", ["url:/x:y", "a:"], "event"
)
CALLS: list[tuple[GetRequest[Any], Any]] = [
    (ViewRequest("visitors"), ANSWER),
    (ViewRequest("visitors", order="-hits,url"), ANSWER),
    (ViewRequest("a b?", {"url": "/x y", "keys": ""}, "a,b", "1", "2", limit=3), ANSWER),
    (LateRequest("visitors"), LATENESS),
    (LateRequest("a b?", {"url": "/x y"}, None, "1", "2", 3), LATENESS),
    (WhyRequest("visitors"), WHY),
    (WhyRequest("a b?", {"url": "/x y"}, "a", "1", 3), WHY),
    (ReplayRequest("visitors"), REPLAY),
    (ReplayRequest("a b?", {"view": "/x y"}, window="1", limit=3), REPLAY),
    (StatusRequest(), STATUS),
    (TopologyRequest(), TOPOLOGY),
    (CatalogRequest(), CATALOG),
    (LineageRequest(), LINEAGE),
    (QualityRequest(), QUALITY),
    (EpochsRequest(), EPOCHS),
    (EpochsRequest("clicks", 5), EPOCHS),
    (ViewDetailRequest("a b?"), ABOUT),
    (SystemRequest(), SYSTEM),
    (DeadLettersRequest("clicks", 2), DEAD_LETTERS),
    (RulesRequest(), RuleList([RULE])),
    (RuleRequest("x y"), RULE),
    (RuleVersionsRequest("slow"), RuleVersions([VERSION])),
    (WatchesRequest(), WatchList([WATCH])),
    (WatchesRequest("ended"), WatchList([WATCH])),
    (WatchRequest("x y"), WATCH),
    (AlertsRequest(), FOUND_ALERTS),
    (AlertsRequest("x y", "open", True, False, 3, 7, 5), FOUND_ALERTS),
    (AlertRequest("9 c"), ALERT),
    (EventRequest("a b?", 1, 7), TRACE),
    (WANTED, FOUND),
    (EventsRequest("clicks"), FOUND),
]


def test_each_question_is_sent_here() -> None:
    assert {type(question) for question, _ in CALLS} == GET_REQUESTS


@pytest.mark.parametrize(("question", "answer"), CALLS, ids=[str(c[0])[:40] for c in CALLS])
def test_each_question_goes_there_and_back(
    remote: RemoteService, shop: Shop, question: GetRequest[Any], answer: Any
) -> None:
    assert remote.ask(question) == answer
    # Authorization asks for an alert too, because its rule decides.
    many = 2 if isinstance(question, AlertRequest) else 1
    assert shop.calls == [(question,)] * many


def test_live_topics_come_on_one_connection(client: httpx.Client, shop: Shop) -> None:
    response = client.get("/v1/live", params={"topics": "status,view:visitors"})
    assert shop.calls == [("live", ["status", "view:visitors"])]
    assert response.headers["content-type"].startswith("text/event-stream")
    first, second, last, _ = response.text.split("\n\n")
    assert first == 'id: 7\nevent: status\ndata: {"state":"running"}'
    assert second == 'id: 8\nevent: view:visitors\ndata: {"rows":[]}'
    assert last.startswith("event: end")


def test_live_topics_are_heard_by_a_client(remote: RemoteService) -> None:
    hearing = remote.live(["status", "view:visitors"])
    (first,), (second,) = hearing.poll(), hearing.poll()
    assert (first.event, first.data) == ("status", {"state": "running"})
    assert second.event == "view:visitors"
    hearing.poll()
    assert hearing.ended
    hearing.close()


def test_what_is_in_the_path_is_not_read_from_the_query(client: httpx.Client, shop: Shop) -> None:
    client.get("/v1/views/visitors/about?view=secret")
    assert shop.calls == [(ViewDetailRequest("visitors"),)]
    assert client.get("/v1/streams/clicks/events?stream=secret").status_code == 400


REFUSED = {
    "/v1/live": "the parameter topics is missing",
    "/v1/live?topics=,": "the parameter topics is missing",
    "/v1/epochs?steam=x": "epochs have no parameter 'steam'",
    "/v1/epochs?limit=1&limit=2": "the parameter 'limit' is given twice",
    "/v1/views/visitors?url=a&url=b": "the parameter 'url' is given twice",
    "/v1/views/visitors/why?limit=0": "limit must be a whole number from 1 to 10000, not '0'",
    "/v1/epochs?limit=0": "limit must be a whole number from 1 to 10000, not '0'",
    "/v1/streams/clicks/events?limit=1001": "limit must be a whole number from 1 to 1000",
    "/v1/streams/clicks/events?offset=3": "the parameter offset requires partition",
    "/v1/streams/clicks/events?field=url": "expected field=name:value, got 'url'",
    "/v1/streams/clicks/events?id=a&id=b": "the parameter 'id' is given twice",
    "/v1/streams/clicks/events?idd=a": "events have no parameter 'idd'",
    "/v1/streams/clicks/events?partition=-1": "partition must be a whole number from 0 on",
    "/v1/streams/clicks/events/0/x": "offset must be a whole number from 0 on, not 'x'",
}


@pytest.mark.parametrize("path", REFUSED)
def test_what_cannot_be_asked_is_refused_in_words(client: httpx.Client, path: str) -> None:
    response = client.get(path)
    assert condition(response) == "BadRequest"
    assert response.json()["message"].startswith(REFUSED[path])
