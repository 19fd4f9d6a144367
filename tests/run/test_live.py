"""Live topics of a project: status, topology, alerts and views, told when they move."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from audit.traced import Traced, event

from headrace.core.errors import NotFound
from headrace.core.time import SECOND
from headrace.run.observatory.live import LiveObservatory
from headrace.run.offline import Offline
from headrace.serving.broadcast import Broadcast, Lane
from headrace.serving.subscriber import Subscriber

LIVE = Lane("live")


@pytest.fixture
def traced(tmp_path: Path) -> Iterator[Traced]:
    made = Traced(tmp_path / "project")
    made.send(event("/a", 5))
    made.epoch()
    made.generation()
    yield made
    made.close()


@pytest.fixture
def offline(traced: Traced) -> Iterator[Offline]:
    service = traced.offline()
    service.store.clock = traced.clock
    yield service
    service.close()


@pytest.fixture
def live(offline: Offline, monkeypatch: pytest.MonkeyPatch) -> LiveObservatory:
    monkeypatch.setattr(Broadcast, "_start", lambda self, lane: None)  # a test turns it by hand
    return LiveObservatory(offline)


def said(subscriber: Subscriber) -> dict[str, Any]:
    return {heard.event: msgspec.json.decode(heard.data) for heard in subscriber.poll()}


def test_each_topic_begins_with_what_its_route_answers(live: LiveObservatory) -> None:
    told = said(live.live(["status", "topology", "alerts", "view:slow", "view:reread"]))
    assert told["status"]["streams"][0]["balance"]["off"] == 0
    assert any(node["id"] == "view:slow" for node in told["topology"]["nodes"])
    assert told["alerts"] == {"alerts": [], "total": 0, "groups": []}
    assert [row["n"] for row in told["view:slow"]["rows"]] == [1]
    assert told["view:reread"]["rows"] == [{"page": "/a", "n": 1}]


def test_a_view_is_told_again_when_its_stream_has_moved(
    live: LiveObservatory, traced: Traced
) -> None:
    subscriber = live.live(["view:total", "view:reread"])
    said(subscriber)
    live.live_topics.broadcast.refresh_lane(LIVE)
    assert said(subscriber) == {}
    traced.send(event("/a", 6))
    traced.epoch()
    live.live_topics.broadcast.refresh_lane(LIVE)
    told = said(subscriber)
    assert told["view:total"]["rows"] == [{"n": 2}]
    assert told["view:reread"]["rows"] == [{"page": "/a", "n": 2}]


def test_a_view_says_how_many_events_it_does_not_contain_yet(
    live: LiveObservatory, traced: Traced
) -> None:
    traced.send(*(event("/a", 6) for _ in range(21)))
    told = said(live.live(["view:total", "view:slow"]))
    assert {view: told[view]["as_of"]["clicks"].get("behind") for view in told} == {
        "view:total": 21,
        "view:slow": 21,
    }


def test_rows_of_a_view_are_bounded(
    live: LiveObservatory, offline: Offline, traced: Traced
) -> None:
    traced.send(*(event(f"/{n}", 6) for n in range(1_100)))
    traced.epoch()
    told = said(live.live(["view:slow"]))
    assert len(told["view:slow"]["rows"]) == 1_000


def test_topics_that_are_none_are_refused_in_words(live: LiveObservatory) -> None:
    with pytest.raises(NotFound, match="there is no live topic 'weather'"):
        live.live(["status", "weather"])
    with pytest.raises(NotFound, match="there is no view 'slo'"):
        live.live(["view:slo"])


def test_rates_come_from_samples_of_what_is_counted(live: LiveObservatory, traced: Traced) -> None:
    live.sampler.turn()
    traced.send(*(event("/a", 7) for _ in range(10)))
    traced.clock.now_us += 3 * SECOND
    live.sampler.turn()
    nodes = {node.id: node for node in live.topology().nodes}
    assert (nodes["log:clicks"].rate, nodes["speed:clicks"].rate) == (2.0, 0.0)


def test_the_topology_is_told_twice_a_second(live: LiveObservatory, traced: Traced) -> None:
    now_us, told = traced.clock(), list[int]()
    live.live_topics.broadcast.clock = lambda: now_us
    subscriber = live.live(["topology"])
    for _ in range(4):
        told += [now_us for heard in subscriber.poll() if heard.event == "topology"]
        now_us = live.live_topics.broadcast.refresh_lane(LIVE) or 0
        live.live_topics.broadcast.refresh_lane(LIVE)
    assert [later - at for at, later in pairwise(told)] == [SECOND // 2] * 3
