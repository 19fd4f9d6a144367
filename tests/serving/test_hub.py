"""The hub: one feed a text, a limit of subscribers, and an end for everybody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.compile.stream_subscription import SubscribedStream
from headrace.core.errors import BadQuery, NotFound, NotReady, Overloaded, Unavailable
from headrace.core.time import SECOND
from headrace.define.settings import SubscribeSettings
from headrace.serving.hub import Hub
from headrace.serving.subscriber import Subscriber
from headrace.serving.view_feed import ViewFeed

from .bench import Bench, Click
from .marks import on_drawn_database
from .streams_bench import Held

pytestmark = on_drawn_database

SETTINGS = SubscribeSettings(connections_max=2, linger_us=10 * SECOND)


def no_events(known: SubscribedStream) -> Held:
    return Held()


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "serving.db")
    made.build()
    yield made
    made.close()


@pytest.fixture
def hub(told: Bench) -> Iterator[Hub]:
    made = Hub(told.store.db, SETTINGS, no_events, told.clock)
    yield made
    made.broadcast.stop()


def feeds(hub: Hub) -> list[ViewFeed]:
    return [topic for topic in hub.broadcast.topics.values() if isinstance(topic, ViewFeed)]


def pages(subscriber: Subscriber, many: int) -> list[str]:
    found: list[str] = []
    for _ in range(50):
        found += [e.data["row"]["page"] for e in subscriber.poll(0.2) if e.event == "pane"]
        if len(found) >= many:
            break
    return found


def test_panes_come_by_themselves_after_a_commit(told: Bench, hub: Hub) -> None:
    calls: list[int] = []
    subscriber = hub.subscribe("SUBSCRIBE TO hits", on_event=lambda: calls.append(1))
    told.send(Click("/a", "ann", 5))
    assert pages(subscriber, 1) == ["/a"]
    assert calls


def test_equal_texts_share_a_feed_and_others_do_not(told: Bench, hub: Hub) -> None:
    hub.subscribe("SUBSCRIBE TO hits")
    hub.subscribe("subscribe to hits emit changes accumulating")
    assert len(hub.broadcast.topics) == 1


def test_more_subscribers_than_the_limit_are_refused_until_one_leaves(
    told: Bench, hub: Hub
) -> None:
    first = hub.subscribe("SUBSCRIBE TO hits")
    stream = hub.subscribe("SUBSCRIBE TO clicks")
    for text in ("SUBSCRIBE TO hits", "SUBSCRIBE TO clicks"):
        with pytest.raises(Overloaded) as refused:
            hub.subscribe(text)
        assert refused.value.message == "more than 2 subscriptions are open"
    first.close()
    hub.subscribe("SUBSCRIBE TO users")
    stream.close()
    hub.subscribe("SUBSCRIBE TO total")


def test_feed_is_kept_for_a_while_after_its_last_subscriber(told: Bench, hub: Hub) -> None:
    subscriber = hub.subscribe("SUBSCRIBE TO hits")
    told.send(Click("/a", "ann", 5))
    assert pages(subscriber, 1) == ["/a"]
    subscriber.close()
    (feed,) = feeds(hub)
    newest = feed.tracker.state.sequence
    told.clock.now_us += 9 * SECOND
    hub.broadcast.refresh_lane(ViewFeed.lane)
    again = hub.subscribe("SUBSCRIBE TO hits", str(newest - 1))
    assert [event.event for event in again.poll()] == ["pane"]
    again.close()
    told.clock.now_us += 10 * SECOND
    hub.broadcast.refresh_lane(ViewFeed.lane)
    gone = hub.subscribe("SUBSCRIBE TO hits", str(newest))
    assert [event.event for event in gone.poll()] == ["reset", "relation"]


def test_numbers_of_a_new_feed_come_after_those_of_the_one_before(told: Bench, hub: Hub) -> None:
    hub.subscribe("SUBSCRIBE TO hits")
    (feed,) = feeds(hub)
    assert feed.tracker.state.sequence >= told.clock.now_us


def test_feed_that_fails_tells_its_subscribers(told: Bench) -> None:
    narrow = Hub(told.store.db, SubscribeSettings(rows_max=1), no_events, told.clock)
    subscriber = narrow.subscribe("SUBSCRIBE TO hits")
    told.send(Click("/a", "ann", 5), Click("/b", "bob", 6))
    events = [event for _ in range(20) for event in subscriber.poll(0.2)]
    assert (events[-1].event, events[-1].data["condition"]) == ("failed", "LimitReached")
    assert subscriber.ended
    narrow.broadcast.stop()


def test_defect_ends_one_feed_and_not_the_others(told: Bench, hub: Hub) -> None:
    hurt, well = hub.subscribe("SUBSCRIBE TO hits"), hub.subscribe("SUBSCRIBE TO total")
    feed = next(feed for feed in feeds(hub) if feed.name == "hits")
    feed.tracker.poll = lambda: 1 // 0  # type: ignore[assignment,method-assign,return-value]
    told.send(Click("/a", "ann", 5))
    events = [event for _ in range(10) for event in hurt.poll(0.2)]
    assert (events[-1].event, events[-1].data["condition"]) == ("failed", "InternalError")
    events = [event for _ in range(20) for event in well.poll(0.1)]
    assert [event.data["row"]["n"] for event in events if event.event == "pane"][-1] == 1


def test_stop_is_the_last_that_everybody_hears(told: Bench, hub: Hub) -> None:
    subscribers = [hub.subscribe("SUBSCRIBE TO hits"), hub.subscribe("SUBSCRIBE TO clicks")]
    hub.broadcast.stop()
    for subscriber in subscribers:
        assert subscriber.poll()[-1].data == {"reason": "the project is shutting down"}
    for text in ("SUBSCRIBE TO hits", "SUBSCRIBE TO clicks"):
        with pytest.raises(Unavailable):
            hub.subscribe(text)


def test_what_cannot_be_heard_is_told_at_once(told: Bench, hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        hub.subscribe("SUBSCRIBE TO hots")
    with pytest.raises(BadQuery):
        hub.subscribe("SELECT 1")
    building = Bench(tmp_path / "building.db")
    with pytest.raises(NotReady):
        Hub(building.store.db, SETTINGS, no_events).subscribe("SUBSCRIBE TO hits")
    building.close()


@pytest.mark.parametrize(
    "where", ["n > 1 AND page LIKE '/%'", "n = 2", "NOT (page = '/b' OR n < 2)"]
)
def test_a_condition_over_any_columns_narrows_what_is_heard(
    where: str, told: Bench, hub: Hub
) -> None:
    subscriber = hub.subscribe(f"SUBSCRIBE TO hits WHERE {where} RETRACTING")
    told.send(Click("/a", "ann", 5), Click("/b", "bob", 6), Click("x", "bob", 6))
    told.send(Click("/a", "cid", 7))
    assert pages(subscriber, 1) == ["/a"]
    if where == "n = 2":
        told.send(Click("/a", "dan", 8))
        (event,) = [e for e in subscriber.poll(5) if e.event == "pane"]
        assert (event.data["op"], event.data["row"]["n"]) == ("delete", 2), "it left the answer"
