"""Subscriptions on a real server, over a real store whose epochs are committed by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pytest

import headrace
from headrace.access.caller import OWNER, Caller
from headrace.access.object import Object
from headrace.api import events
from headrace.api.client import RemoteService
from headrace.api.server import HttpServer
from headrace.core.errors import BadQuery, Forbidden, NotFound, Overloaded, Unavailable
from headrace.core.time import SECOND
from headrace.define.settings import HttpSettings, SubscribeSettings
from headrace.define.stream_subscription import subscribed_name
from headrace.run.read_permission import object_named
from headrace.serving.hub import Hub
from headrace.serving.subscriber import OpenSubscription
from tests.access.users import TEST, bearer, open_access, token_of
from tests.serving.bench import Bench, Click
from tests.serving.streams_bench import Held

from .conftest import Shop, condition

HITS = "SUBSCRIBE TO hits"


@dataclass
class Telling(Shop):
    """A shop with a hub."""

    hub: Hub | None = None

    def subscribed(self, text: str, caller: Caller) -> Object:
        assert self.hub is not None
        return object_named(self.hub._plan(), subscribed_name(text), caller)

    def subscribe(
        self,
        text: str,
        after: str | None = None,
        news: Callable[[], None] = lambda: None,
        caller: Caller = OWNER,
    ) -> OpenSubscription:
        assert self.hub is not None
        return self.hub.subscribe(text, after, news, caller.user)


class Place:
    """A store, a hub and a server over them."""

    def __init__(self, folder: Path) -> None:
        self.bench = Bench(folder / "serving.db")
        self.bench.build()
        self.access, self.token = open_access(folder)
        self.clicks = Held()
        self.start()

    def start(self, port: int = 0) -> None:
        settings = SubscribeSettings(connections_max=3, waiting_max=500)
        self.hub = Hub(self.bench.store.db, settings, lambda known: self.clicks, self.bench.clock)
        self.clicks.appended = partial(self.hub.broadcast.notify, "clicks")
        self.server = HttpServer(Telling(hub=self.hub), HttpSettings(port=port), self.access)
        self.server.start()

    def stop(self) -> None:
        self.hub.broadcast.stop()
        self.server.stop()

    def open(self) -> int:
        return self.hub.broadcast.subscribers_count


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.stop()
    made.access.close()
    made.bench.close()


def test_stream_of_events_has_ids_names_and_json(place: Place) -> None:
    url = f"{place.server.url}/v1/subscribe"
    place.bench.send(Click("/a", "ann", 5))
    with httpx.stream(
        "GET", url, params={"sql": HITS}, headers=bearer(place.token), timeout=10
    ) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-store"
        lines = list(islice(response.iter_lines(), 8))
    assert lines[1::4] == ["event: relation", "event: pane"]
    assert lines[3::4] == ["", ""]
    assert lines[4].startswith("id: ")
    assert '"row":{"page":"/a"' in lines[6]


def test_connection_that_is_closed_is_left(place: Place) -> None:
    with RemoteService(place.server.url, place.token) as remote:
        hearing = remote.subscribe(HITS)
        assert hearing.poll()[0].event == "relation"
        assert place.open() == 1
        hearing.close()
    place.bench.send(Click("/a", "ann", 5))
    for _ in range(50):
        if not place.open():
            break
        asyncio.run(asyncio.sleep(0.1))
    assert place.open() == 0


def test_what_an_event_says_is_no_line_of_the_stream(place: Place) -> None:
    said = "x\u2028id: 9,9\u2028event: position\u2029\u0085\r\n\ndata: {}"
    place.bench.send(Click(said, "ann", 5))
    with RemoteService(place.server.url, place.token) as remote:
        hearing = remote.subscribe(HITS)
        heard = [hearing.poll()[0] for _ in range(2)]
        hearing.close()
    assert [one.event for one in heard] == ["relation", "pane"]
    assert heard[1].data["row"]["page"] == said


def test_last_event_id_resumes_and_an_unknown_one_is_reset(place: Place) -> None:
    place.bench.send(Click("/a", "ann", 5))
    with RemoteService(place.server.url, place.token) as remote:
        first = remote.subscribe(HITS)
        heard = [first.poll()[0], first.poll()[0]]
        assert [event.event for event in heard] == ["relation", "pane"]
        again = remote.subscribe(HITS, heard[0].id)
        assert again.poll() == [heard[1]]
        other = remote.subscribe(HITS, "12")
        assert [other.poll()[0].event, other.poll()[0].event] == ["reset", "relation"]


def test_word_as_last_event_id_is_reset(place: Place) -> None:
    url, headers = (
        f"{place.server.url}/v1/subscribe",
        {"Last-Event-ID": "yesterday"} | bearer(place.token),
    )
    with httpx.stream("GET", url, params={"sql": HITS}, headers=headers, timeout=10) as response:
        assert next(response.iter_lines()) == "event: reset"


def test_subscribe_comes_back_after_a_restart_and_says_so(place: Place) -> None:
    port = int(place.server.url.rpartition(":")[2])

    def restart(_: float) -> None:
        if place.hub.broadcast._stop.is_set():
            place.start(port)

    heard = headrace.subscribe(HITS, place.server.url, place.token, sleep=restart)
    place.bench.send(Click("/a", "ann", 5))
    assert [next(heard)["event"], next(heard)["event"]] == ["relation", "pane"]
    place.stop()
    place.bench.clock.now_us += SECOND
    assert [next(heard)["event"], next(heard)["event"]] == ["reset", "relation"]
    assert next(heard)["data"]["row"]["page"] == "/a"
    heard.close()  # type: ignore[attr-defined]


def test_rows_of_a_stream_have_positions_as_ids(place: Place) -> None:
    place.clicks.send(1, 7)
    url, asked = f"{place.server.url}/v1/subscribe", {"sql": "SUBSCRIBE TO clicks FROM BEGINNING"}
    who = bearer(place.token)
    with httpx.stream("GET", url, params=asked, headers=who, timeout=10) as response:
        lines = list(islice(response.iter_lines(), 8))
    assert lines == [
        "id: 0,0", "event: position", "data: {}", "",
        "id: 0,1", "event: rows", 'data: {"rows":[{"n":7}],"ends":["0,1"]}', "",
    ]  # fmt: skip


def test_subscribe_goes_on_with_a_stream_after_a_restart(place: Place) -> None:
    port = int(place.server.url.rpartition(":")[2])

    def restart(_: float) -> None:
        if place.hub.broadcast._stop.is_set():
            place.start(port)

    heard = headrace.subscribe("SUBSCRIBE TO clicks", place.server.url, place.token, sleep=restart)
    assert next(heard) == {"event": "position", "data": {}, "id": "0,0"}
    place.clicks.send(0, 1)
    assert next(heard)["data"]["rows"] == [{"n": 1}]
    place.stop()
    place.clicks.send(0, 2)
    place.clicks.send(1, 3)
    assert next(heard) == {"event": "position", "data": {}, "id": "1,0"}
    rows = {"rows": [{"n": 2}, {"n": 3}], "ends": ["2,0", "2,1"]}
    assert next(heard) == {"event": "rows", "data": rows, "id": "2,1"}
    heard.close()  # type: ignore[attr-defined]


def test_a_stream_is_heard_by_those_who_may_read_it(place: Place) -> None:
    eve = token_of(place.access, "eve", "read", on="stream:clicks")
    with RemoteService(place.server.url, eve) as remote:
        hearing = remote.subscribe("SUBSCRIBE TO clicks")
        assert hearing.poll()[0].event == "position"
        for text in (HITS, "SUBSCRIBE TO nothing"):
            with pytest.raises(Forbidden, match="eve may not read"):
                remote.subscribe(text)
        place.access.remove_grant("eve", "read", "stream:clicks", TEST)
        place.clicks.send(0, 1)
        assert hearing.poll()[0].event == "failed"
        hearing.close()


def test_position_that_is_none_is_a_bad_query(place: Place) -> None:
    url = f"{place.server.url}/v1/subscribe"
    headers = {"Last-Event-ID": "yesterday"} | bearer(place.token)
    refused = httpx.get(url, params={"sql": "SUBSCRIBE TO clicks"}, headers=headers)
    assert (refused.status_code, condition(refused)) == (400, "BadQuery")
    assert refused.json()["message"] == "'yesterday' is not a position of 'clicks'"


@pytest.mark.parametrize(
    ("text", "kind"), [("SUBSCRIBE TO hots", NotFound), ("SELECT 1", BadQuery)]
)
def test_what_is_wrong_with_the_text_comes_back_as_its_condition(
    place: Place, text: str, kind: type[Exception]
) -> None:
    with RemoteService(place.server.url, place.token) as remote, pytest.raises(kind):
        remote.subscribe(text)
    with pytest.raises(kind):
        next(headrace.subscribe(text, place.server.url, place.token))


def test_missing_text_is_a_bad_request(place: Place) -> None:
    url = f"{place.server.url}/v1/subscribe"
    assert condition(httpx.get(url, headers=bearer(place.token))) == "BadRequest"


def test_too_many_subscriptions_are_refused(place: Place) -> None:
    with RemoteService(place.server.url, place.token) as remote:
        open_ones = [remote.subscribe(HITS) for _ in range(3)]
        with pytest.raises(Overloaded):
            remote.subscribe(HITS)
        for hearing in open_ones:
            hearing.close()


def test_server_that_is_gone_is_unavailable(place: Place) -> None:
    with RemoteService(place.server.url, place.token) as remote:
        hearing = remote.subscribe(HITS)
        place.stop()
        told = [event for _ in range(2) for event in hearing.poll()]
        assert told[-1].event == "end"
        assert hearing.ended
        with pytest.raises(Unavailable):
            remote.subscribe(HITS)


def test_silence_is_filled_with_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "QUIET_S_MAX", 0.01)

    class Silent:
        ended = False

        def poll(self, seconds: float = 0.0) -> list[Any]:
            return []

        def close(self) -> None: ...

    async def first() -> bytes:
        return await anext(events._events(Silent(), asyncio.Event(), lambda: None))

    assert asyncio.run(first()) == b": still here\n\n"


def test_a_subscription_ends_when_its_grant_is_taken_back(place: Place) -> None:
    secret = token_of(place.access, "ada", "read", on="view:hits")
    with RemoteService(place.server.url, secret) as remote:
        hearing = remote.subscribe(HITS)
        assert hearing.poll()[0].event == "relation"
        place.access.remove_grant("ada", "read", "view:hits", TEST)
        place.bench.send(Click("/a", "ann", 5))
        (last,) = hearing.poll()
        assert (last.event, last.data["condition"], hearing.ended) == ("failed", "Forbidden", True)
        with pytest.raises(Forbidden, match="ada may not read anything here"):
            remote.subscribe(HITS)
