"""Who hears a stream hears each row once, wherever it is cut off and however slow it is."""

from __future__ import annotations

from collections import Counter

import pytest

from headrace.core.position import Position
from headrace.serving import stream_feed as body
from headrace.serving.subscriber import SubscriptionEvent

from .streams_bench import Held, feed_of, joined

START = Position((0, 0))


@pytest.fixture(autouse=True)
def _small_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "ROWS_MAX", 2)


@pytest.fixture
def held() -> Held:
    """Events of no row, of one, and of more than a message has."""
    made = Held()
    for number in range(6):
        made.send(0, number)
    made.send(0)
    made.send(1, 10, 11, 12, 13, 14)
    made.send(1)
    made.send(1, 20)
    made.send(1)
    return made


def rows(heard: list[SubscriptionEvent]) -> list[int]:
    return [row["n"] for one in heard if one.event == "rows" for row in one.data["rows"]]


def everything(
    source: Held, position: Position = START, events_max: int = 4
) -> list[SubscriptionEvent]:
    """All that one hears who keeps up."""
    feed = feed_of(source, events_max)
    subscriber = joined(feed, position)
    while feed.refresh() is not None:
        pass
    return subscriber.poll()


def test_rows_come_in_the_order_of_the_log(held: Held) -> None:
    heard = everything(held, events_max=100)
    assert rows(heard) == [0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 20]
    assert [(one.event, one.id) for one in heard] == [
        ("position", "0,0"),
        ("rows", "2,0"),
        ("rows", "4,0"),
        ("rows", "6,0"),
        ("rows", "7,1"),
        ("rows", "7,4"),
    ]


@pytest.mark.parametrize("events_max", [1, 2, 3, 5, 100])
def test_who_resumes_at_any_id_hears_exactly_the_rest(held: Held, events_max: int) -> None:
    whole = everything(held, events_max=events_max)
    assert Counter(rows(whole)) == Counter([*range(6), *range(10, 15), 20])
    for number, heard in enumerate(whole, start=1):
        assert heard.id is not None
        after = everything(held, Position.parse(heard.id))
        assert Counter(rows(whole[:number])) + Counter(rows(after)) == Counter(rows(whole))


def test_what_is_heard_is_cut_after_any_row_and_continued_there(held: Held) -> None:
    whole = everything(held)
    messages = [one for one in whole if one.event == "rows"]
    told = [p for one in messages for p in zip(rows([one]), one.data["ends"], strict=True)]
    for number, (_, end) in enumerate(told, start=1):
        if number < len(told) and told[number][1] == end:
            continue  # between the rows of an event there is no position
        after = everything(held, position=Position.parse(end))
        assert Counter(n for n, _ in told[:number]) + Counter(rows(after)) == Counter(rows(whole))


def test_events_without_rows_are_a_position_alone(held: Held) -> None:
    heard = everything(held, Position((6, 3)))
    assert [(one.event, one.data, one.id) for one in heard] == [
        ("position", {}, "6,3"),
        ("position", {}, "7,4"),
    ]


def test_nothing_is_said_while_nothing_comes(held: Held) -> None:
    feed = feed_of(held)
    subscriber = joined(feed, held.end())
    subscriber.poll()
    assert feed.refresh() is None
    assert (subscriber.poll(), held.asked) == ([], [])
    held.send(0, 99)
    assert feed.refresh() is None
    assert [(one.id, one.data) for one in subscriber.poll()] == [
        ("8,4", {"rows": [{"n": 99}], "ends": ["8,4"]})
    ]


def test_those_at_one_position_share_what_is_read(held: Held) -> None:
    feed = feed_of(held)
    same = [joined(feed, START), joined(feed, START)]
    other = joined(feed, Position((6, 3)))
    feed.refresh()
    assert [str(range.lower) for range in held.asked] == ["0,0", "6,3"]
    assert same[0].poll() == same[1].poll()
    assert rows(other.poll()) == []
    held.asked.clear()
    held.send(0, 99)
    feed.refresh()
    assert [str(range.lower) for range in held.asked] == ["7,4"], "all have come together"


def test_what_a_source_can_read_is_how_far_a_turn_goes(held: Held) -> None:
    held.events_max = 3
    assert Counter(rows(everything(held, events_max=100))) == Counter(rows(everything(held)))
    assert all(len(range) <= 4 for range in held.asked)


def test_a_subscriber_that_does_not_keep_up_waits_at_its_position(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body, "WAITING_MAX", 2)
    feed = feed_of(held, events_max=1)
    slow, quick = joined(feed, START), joined(feed, START)
    found: list[SubscriptionEvent] = []
    for _ in range(20):
        feed.refresh()
        found += quick.poll()
    assert slow.waiting == 2
    assert not slow.ended
    assert Counter(rows(found)) == Counter([*range(6), *range(10, 15), 20])
    late: list[SubscriptionEvent] = []
    for _ in range(20):
        late += slow.poll()
        feed.refresh()
    assert Counter(rows(late)) == Counter(rows(found))


def test_who_has_left_is_read_for_no_more(held: Held) -> None:
    feed = feed_of(held)
    subscriber = joined(feed, START)
    subscriber.close()
    feed.refresh()
    assert held.asked == []
    assert feed.subscribers == {}
