"""Who hears a feed hears everything once, or is told that it does not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.compile.view_subscription import shape_of
from headrace.core.errors import LimitReached
from headrace.define.settings import SubscribeSettings
from headrace.define.view_subscription import read_subscription
from headrace.serving.emit_state import EmitState
from headrace.serving.read import Reader
from headrace.serving.subscriber import Subscriber, SubscriptionEvent
from headrace.serving.view_feed import ViewFeed
from headrace.serving.view_tracker import ViewTracker

from .bench import WINDOWED, Bench, Click, definitions, plan_of
from .marks import on_drawn_database

pytestmark = on_drawn_database

FIRST = 1_000


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "serving.db")
    made.build()
    yield made
    made.close()


def tracker(bench: Bench, text: str = "SUBSCRIBE TO hits", rows_max: int = 100) -> ViewTracker:
    subscription = read_subscription(text)
    reader = Reader(bench.store.db, clock=bench.clock, rows_max=rows_max)
    return ViewTracker(
        reader, subscription, shape_of(bench.plan, subscription), EmitState(sequence=FIRST)
    )


def feed(bench: Bench, text: str = "SUBSCRIBE TO hits", kept: int = 10) -> ViewFeed:
    return ViewFeed(tracker(bench, text), SubscribeSettings(events_kept=kept), threading.RLock())


def join(feed: ViewFeed, after: int | None = None, waiting_max: int = 10) -> Subscriber:
    subscriber = Subscriber(waiting_max, lambda: None, lambda left: None)
    feed.subscribe(subscriber, after)
    return subscriber


def said(events: list[SubscriptionEvent]) -> list[tuple[str, int | None]]:
    return [(event.event, int(event.id) if event.id else None) for event in events]


def test_subscriber_begins_with_the_relation_and_goes_on_with_panes(told: Bench) -> None:
    one = feed(told)
    told.send(Click("/a", "ann", 5))
    one.refresh()
    subscriber = join(one)
    (relation,) = subscriber.poll()
    assert relation.event == "relation"
    assert relation.id == str(FIRST + 1)
    assert [row["n"] for row in relation.data["rows"]] == [1]
    told.send(Click("/a", "bob", 6))
    one.refresh()
    (pane,) = subscriber.poll()
    assert (pane.event, pane.id, pane.data["row"]["n"]) == ("pane", str(FIRST + 2), 2)
    assert subscriber.poll() == []


def test_relation_has_a_session_until_the_longer_one_is_sent(tmp_path: Path) -> None:
    sql = definitions(WINDOWED)
    bench = Bench(tmp_path / "serving.db", plan_of(sql), sql)
    bench.build()
    one = feed(bench, "SUBSCRIBE TO visits EMIT ON TIME")
    bench.send(Click("/a", "ann", 0), Click("/b", "bob", 15))
    one.refresh()
    bench.send(Click("/a", "ann", 5))
    one.refresh()
    subscriber = join(one)
    (relation,) = subscriber.poll()
    assert [row["n"] for row in relation.data["rows"]] == [1]
    bench.send(Click("/b", "bob", 20))
    one.refresh()
    bench.close()
    old, new = (event.data for event in subscriber.poll())
    assert (old["op"], old["row"]) == ("delete", relation.data["rows"][0])
    assert (new["op"], new["row"]["n"]) == ("insert", 2)
    (after,) = join(one).poll()
    assert after.data["rows"] == [new["row"]]


def test_who_comes_back_goes_on_after_the_last_event_it_heard(told: Bench) -> None:
    one = feed(told)
    for second in range(4):
        told.send(Click("/a", "ann", second))
        one.refresh()
    assert said(join(one, FIRST + 2).poll()) == [("pane", FIRST + 3), ("pane", FIRST + 4)]
    assert said(join(one, FIRST + 4).poll()) == []
    assert len(join(one, FIRST).poll()) == 4


@pytest.mark.parametrize("after", [FIRST - 1, FIRST + 1, FIRST + 99, -1])
def test_who_was_away_too_long_hears_reset_and_the_relation(told: Bench, after: int) -> None:
    one = feed(told, kept=2)
    for second in range(4):
        told.send(Click("/a", "ann", second))
        one.refresh()
    events = join(one, after).poll()
    assert said(events) == [("reset", None), ("relation", FIRST + 4)]
    assert f"event {after} is no longer retained" in events[0].data["reason"]
    assert len(join(one, FIRST + 2).poll()) == 2


def test_relation_of_a_relation_stream_is_its_rows(told: Bench) -> None:
    one = feed(told, "SUBSCRIBE TO hits EMIT RELATION")
    told.send(Click("/a", "ann", 5))
    one.refresh()
    (relation,) = join(one).poll()
    assert [row["page"] for row in relation.data["rows"]] == ["/a"]


def test_slow_subscriber_is_cut_off_with_a_last_event(told: Bench) -> None:
    one = feed(told)
    slow = join(one, waiting_max=2)
    for second in range(6):
        told.send(Click("/a", "ann", second))
        one.refresh()
    assert said(slow.poll()) == [("slow", None)]
    assert slow.ended
    told.send(Click("/a", "ann", 7))
    one.refresh()
    assert slow.poll() == []


def test_promotion_that_changes_no_value_says_nothing(told: Bench) -> None:
    one = tracker(told)
    told.send(Click("/a", "ann", 5), Click("/b", "bob", 6))
    found = one.poll()
    assert found is not None
    assert len(found.panes) == 2
    one.commit(found)
    assert one.poll() is None, "there is no progress"
    told.build(full=False)
    again = one.poll()
    assert again is not None
    assert again.panes == []


def test_panes_that_were_not_committed_are_returned_again(told: Bench) -> None:
    one = tracker(told)
    told.send(Click("/a", "ann", 5))
    first, second = one.poll(), one.poll()
    assert first is not None
    assert second is not None
    assert first.panes == second.panes


def test_interval_is_due_without_progress(told: Bench) -> None:
    one = tracker(told, "SUBSCRIBE TO hits EMIT EARLY EVERY INTERVAL 2 SECONDS")
    told.send(Click("/a", "ann", 5))
    first = one.poll()
    assert first is not None
    one.commit(first)
    assert one.poll() is None
    told.clock.now_us += 2_000_000
    later = one.poll()
    assert later is not None
    assert len(later.panes) == 1


def test_view_with_too_many_rows_cannot_be_subscribed_to(told: Bench) -> None:
    told.send(Click("/a", "ann", 5), Click("/b", "bob", 6))
    with pytest.raises(LimitReached) as refused:
        tracker(told, rows_max=1).poll()
    assert refused.value.message == "view 'hits' exceeds the subscription limit of 1 rows"
