"""What an observer asks goes there and back, and what is live comes on one connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from headrace.api.client import Remote
from headrace.api.observatory import Observatory
from headrace.api.observed.events import EventsWanted

from .conftest import (
    ABOUT,
    CATALOG,
    EPOCHS,
    FOUND,
    LINEAGE,
    QUALITY,
    SYSTEM,
    TOPOLOGY,
    TRACE,
    Shop,
    condition,
)

WANTED = EventsWanted(
    5, "3,4", 1, 2, "e 1", "a&b", "2026-01-01", "2026-01-02", [("url", "/x:y"), ("a", "")], "event"
)
CALLS: list[tuple[Callable[[Observatory], Any], Any, tuple[Any, ...]]] = [
    (lambda o: o.topology(), TOPOLOGY, ("topology",)),
    (lambda o: o.catalog(), CATALOG, ("catalog",)),
    (lambda o: o.lineage(), LINEAGE, ("lineage",)),
    (lambda o: o.quality(), QUALITY, ("quality",)),
    (lambda o: o.epochs(), EPOCHS, ("epochs", None, 100)),
    (lambda o: o.epochs("clicks", 5), EPOCHS, ("epochs", "clicks", 5)),
    (lambda o: o.about("a b?"), ABOUT, ("about", "a b?")),
    (lambda o: o.system(), SYSTEM, ("system",)),
    (lambda o: o.event("a b?", 1, 7), TRACE, ("event", "a b?", 1, 7)),
    (lambda o: o.events("clicks", WANTED), FOUND, ("events", "clicks", WANTED)),
    (
        lambda o: o.events("clicks", EventsWanted()),
        FOUND,
        ("events", "clicks", EventsWanted()),
    ),
]


@pytest.mark.parametrize(("ask", "answer", "call"), CALLS, ids=[str(c[2][:2]) for c in CALLS])
def test_each_method_goes_there_and_back(
    remote: Remote,
    shop: Shop,
    ask: Callable[[Observatory], Any],
    answer: Any,
    call: tuple[Any, ...],
) -> None:
    assert ask(remote.observatory) == answer
    assert shop.calls == [call]


def test_live_topics_come_on_one_connection(client: httpx.Client, shop: Shop) -> None:
    response = client.get("/v1/live", params={"topics": "status,view:visitors"})
    assert shop.calls == [("live", ["status", "view:visitors"])]
    assert response.headers["content-type"].startswith("text/event-stream")
    first, second, last, _ = response.text.split("\n\n")
    assert first == 'id: 7\nevent: status\ndata: {"state":"running"}'
    assert second == 'id: 8\nevent: view:visitors\ndata: {"rows":[]}'
    assert last.startswith("event: end")


def test_live_topics_are_heard_by_a_client(remote: Remote) -> None:
    hearing = remote.observatory.live(["status", "view:visitors"])
    (first,), (second,) = hearing.take(), hearing.take()
    assert (first.event, first.data) == ("status", {"state": "running"})
    assert second.event == "view:visitors"
    hearing.take()
    assert hearing.ended
    hearing.close()


REFUSED = {
    "/v1/live": "the parameter topics is missing",
    "/v1/live?topics=,": "the parameter topics is missing",
    "/v1/epochs?steam=x": "epochs have the parameters stream and limit",
    "/v1/epochs?limit=0": "limit must be a whole number from 1 to 10000, not '0'",
    "/v1/streams/clicks/events?limit=1001": "limit must be a whole number from 1 to 1000",
    "/v1/streams/clicks/events?offset=3": "an offset is of a partition, which is missing",
    "/v1/streams/clicks/events?field=url": "a field is given as name:value, not 'url'",
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
