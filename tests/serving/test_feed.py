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
from headrace.serving.account import Account
from headrace.serving.feed import PaneFeed
from headrace.serving.hearer import Heard, Hearer
from headrace.serving.read import Reader
from headrace.serving.watch import Watch

from .bench import WINDOWED, Bench, Click, definitions, plan_of

FIRST = 1_000


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "serving.db")
    made.build()
    yield made
    made.close()


def watch(bench: Bench, text: str = "SUBSCRIBE TO hits", rows_max: int = 100) -> Watch:
    asked = read_subscription(text)
    reader = Reader(bench.store.db, clock=bench.clock, rows_max=rows_max)
    return Watch(reader, asked, shape_of(bench.plan, asked), Account(sequence=FIRST))


def feed(bench: Bench, text: str = "SUBSCRIBE TO hits", kept: int = 10) -> PaneFeed:
    return PaneFeed(watch(bench, text), SubscribeSettings(events_kept=kept), threading.RLock())


def join(feed: PaneFeed, after: int | None = None, waiting_max: int = 10) -> Hearer:
    hearer = Hearer(waiting_max, lambda: None, lambda left: None)
    feed.join(hearer, after)
    return hearer


def said(events: list[Heard]) -> list[tuple[str, int | None]]:
    return [(event.event, int(event.id) if event.id else None) for event in events]


def test_hearer_begins_with_the_relation_and_goes_on_with_panes(told: Bench) -> None:
    one = feed(told)
    told.send(Click("/a", "ann", 5))
    one.look()
    hearer = join(one)
    (relation,) = hearer.take()
    assert relation.event == "relation"
    assert relation.id == str(FIRST + 1)
    assert [row["n"] for row in relation.data["rows"]] == [1]
    told.send(Click("/a", "bob", 6))
    one.look()
    (pane,) = hearer.take()
    assert (pane.event, pane.id, pane.data["row"]["n"]) == ("pane", str(FIRST + 2), 2)
    assert hearer.take() == []


def test_relation_has_a_session_until_the_longer_one_is_sent(tmp_path: Path) -> None:
    sql = definitions(WINDOWED)
    bench = Bench(tmp_path / "serving.db", plan_of(sql), sql)
    bench.build()
    one = feed(bench, "SUBSCRIBE TO visits EMIT ON TIME")
    bench.send(Click("/a", "ann", 0), Click("/b", "bob", 15))
    one.look()
    bench.send(Click("/a", "ann", 5))
    one.look()
    hearer = join(one)
    (relation,) = hearer.take()
    assert [row["n"] for row in relation.data["rows"]] == [1]
    bench.send(Click("/b", "bob", 20))
    one.look()
    bench.close()
    old, new = (event.data for event in hearer.take())
    assert (old["op"], old["row"]) == ("delete", relation.data["rows"][0])
    assert (new["op"], new["row"]["n"]) == ("insert", 2)
    (after,) = join(one).take()
    assert after.data["rows"] == [new["row"]]


def test_who_comes_back_goes_on_after_the_last_event_it_heard(told: Bench) -> None:
    one = feed(told)
    for second in range(4):
        told.send(Click("/a", "ann", second))
        one.look()
    assert said(join(one, FIRST + 2).take()) == [("pane", FIRST + 3), ("pane", FIRST + 4)]
    assert said(join(one, FIRST + 4).take()) == []
    assert len(join(one, FIRST).take()) == 4


@pytest.mark.parametrize("after", [FIRST - 1, FIRST + 1, FIRST + 99, -1])
def test_who_was_away_too_long_hears_reset_and_the_relation(told: Bench, after: int) -> None:
    one = feed(told, kept=2)
    for second in range(4):
        told.send(Click("/a", "ann", second))
        one.look()
    events = join(one, after).take()
    assert said(events) == [("reset", None), ("relation", FIRST + 4)]
    assert f"event {after} is not kept" in events[0].data["reason"]
    assert len(join(one, FIRST + 2).take()) == 2


def test_relation_of_a_relation_stream_is_its_rows(told: Bench) -> None:
    one = feed(told, "SUBSCRIBE TO hits EMIT RELATION")
    told.send(Click("/a", "ann", 5))
    one.look()
    (relation,) = join(one).take()
    assert [row["page"] for row in relation.data["rows"]] == ["/a"]


def test_slow_hearer_is_cut_off_with_a_last_event(told: Bench) -> None:
    one = feed(told)
    slow = join(one, waiting_max=2)
    for second in range(6):
        told.send(Click("/a", "ann", second))
        one.look()
    assert said(slow.take()) == [("slow", None)]
    assert slow.ended
    told.send(Click("/a", "ann", 7))
    one.look()
    assert slow.take() == []


def test_promotion_that_changes_no_value_says_nothing(told: Bench) -> None:
    one = watch(told)
    told.send(Click("/a", "ann", 5), Click("/b", "bob", 6))
    found = one.look()
    assert found is not None
    assert len(found.panes) == 2
    one.told(found)
    assert one.look() is None, "nothing has moved"
    told.build(full=False)
    again = one.look()
    assert again is not None
    assert again.panes == []


def test_look_that_was_not_told_is_looked_at_again(told: Bench) -> None:
    one = watch(told)
    told.send(Click("/a", "ann", 5))
    first, second = one.look(), one.look()
    assert first is not None
    assert second is not None
    assert first.panes == second.panes


def test_interval_is_looked_at_though_nothing_moved(told: Bench) -> None:
    one = watch(told, "SUBSCRIBE TO hits EMIT EARLY EVERY INTERVAL 2 SECONDS")
    told.send(Click("/a", "ann", 5))
    first = one.look()
    assert first is not None
    one.told(first)
    assert one.look() is None
    told.clock.now_us += 2_000_000
    later = one.look()
    assert later is not None
    assert len(later.panes) == 1


def test_view_with_too_many_rows_cannot_be_watched(told: Bench) -> None:
    told.send(Click("/a", "ann", 5), Click("/b", "bob", 6))
    with pytest.raises(LimitReached) as refused:
        watch(told, rows_max=1).look()
    assert refused.value.message == "view 'hits' has more than 1 rows to watch"
