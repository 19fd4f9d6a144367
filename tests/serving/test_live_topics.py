"""A topic is computed once for all who hear it, and told only when it has changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import pytest

from headrace.core.errors import NotFound, NotReady, Overloaded, Unavailable
from headrace.define.settings import LiveSettings
from headrace.serving.broadcast import Broadcast, Lane
from headrace.serving.changes import Changes
from headrace.serving.live_topics import LiveTopic, LiveTopics
from headrace.serving.subscriber import Subscriber, SubscriptionEvent

INTERVAL, LIVE = 250_000, Lane("live")


@dataclass
class Clock:
    now_us: int = 1_000_000

    def __call__(self) -> int:
        return self.now_us


@dataclass
class States:
    """Topics whose states a test sets; `asked` counts how often each was computed."""

    values: dict[str, Any] = field(default_factory=lambda: {"a": 1, "b": 1})
    marks: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def topic(self, name: str) -> LiveTopic:
        if name not in self.values:
            raise NotFound(f"there is no live topic '{name}'")
        mark: Callable[[], Any] | None = (lambda: self.marks[name]) if name in self.marks else None
        return LiveTopic(name, lambda: self._state(name), mark, INTERVAL)

    def _state(self, name: str) -> Any:
        self.asked.append(name)
        value = self.values[name]
        if isinstance(value, Exception):
            raise value
        return {"value": value}


@pytest.fixture
def states() -> States:
    return States()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def live_topics(states: States, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> LiveTopics:
    monkeypatch.setattr(Broadcast, "_start", lambda self, lane: None)  # a test turns it by hand
    settings = replace(LiveSettings(), waiting_max=3, connections_max=3)
    return LiveTopics(settings, states.topic, Changes(), clock)


def turn(live_topics: LiveTopics, clock: Clock) -> None:
    clock.now_us += INTERVAL
    live_topics.broadcast.refresh_lane(LIVE)


def said(subscriber: Subscriber) -> list[tuple[str, Any]]:
    return [(one.event, _data(one)) for one in subscriber.poll()]


def _data(heard: SubscriptionEvent) -> Any:
    data = heard.data
    return msgspec.json.decode(data).get("value") if isinstance(data, msgspec.Raw) else data


def test_a_subscriber_begins_with_the_state_of_each_topic_and_hears_changes(
    live_topics: LiveTopics, states: States, clock: Clock
) -> None:
    subscriber = live_topics.subscribe(["a", "b", "a"])
    assert said(subscriber) == [("a", 1), ("b", 1)]
    turn(live_topics, clock)
    assert said(subscriber) == []
    states.values["b"] = 2
    turn(live_topics, clock)
    assert said(subscriber) == [("b", 2)]


def test_many_subscribers_cost_as_much_as_one(
    live_topics: LiveTopics, states: States, clock: Clock
) -> None:
    subscribers = [live_topics.subscribe(["a"]) for _ in range(3)]
    assert states.asked == ["a"]
    states.values["a"] = 2
    turn(live_topics, clock)
    assert states.asked == ["a", "a"]
    told = [subscriber.poll() for subscriber in subscribers]
    assert told[0][1] is told[1][1] is told[2][1]


def test_a_topic_is_not_asked_more_often_than_its_interval(
    live_topics: LiveTopics, states: States, clock: Clock
) -> None:
    live_topics.subscribe(["a"])
    for _ in range(5):
        clock.now_us += INTERVAL // 5
        live_topics.broadcast.refresh_lane(LIVE)
    assert states.asked == ["a", "a"]


def test_a_topic_with_a_mark_is_asked_only_when_that_has_moved(
    live_topics: LiveTopics, states: States, clock: Clock
) -> None:
    states.marks["a"] = (1, "x")
    subscriber = live_topics.subscribe(["a"])
    states.values["a"] = 2
    turn(live_topics, clock)
    assert states.asked == ["a"]
    states.marks["a"] = (2, "x")
    turn(live_topics, clock)
    assert said(subscriber) == [("a", 1), ("a", 2)]


def test_numbers_only_grow_also_for_one_who_comes_back(
    live_topics: LiveTopics, states: States, clock: Clock
) -> None:
    first = live_topics.subscribe(["a", "b"])
    for value in (2, 3):
        states.values["a"] = value
        turn(live_topics, clock)
    numbers = [int(one.id or 0) for one in first.poll()]
    assert numbers == sorted(set(numbers))
    first.close()
    states.values["b"] = 9
    again = [(int(one.id or 0), _data(one)) for one in live_topics.subscribe(["a", "b"]).poll()]
    assert sorted(value for _, value in again) == [3, 9]
    assert min(number for number, _ in again) > numbers[-1]
    later = LiveTopics(LiveSettings(), states.topic, Changes(), lambda: clock.now_us + 10**9)
    assert int(later.subscribe(["a"]).poll()[0].id or 0) > again[-1][0]


def test_numbers_only_grow_for_one_who_joins_topics_that_others_hear(
    live_topics: LiveTopics, states: States, clock: Clock
) -> None:
    live_topics.subscribe(["a", "b"])
    states.values["a"] = 2
    turn(live_topics, clock)
    both = live_topics.subscribe(["a", "b"])
    states.values["b"] = 3
    turn(live_topics, clock)
    numbers = [int(one.id or 0) for one in both.poll()]
    assert len(numbers) == 3
    assert numbers == sorted(set(numbers))


def test_one_who_does_not_keep_up_hears_slow_as_the_last(
    live_topics: LiveTopics, states: States, clock: Clock
) -> None:
    slow, quick = live_topics.subscribe(["a"]), live_topics.subscribe(["a"])
    for value in range(2, 6):
        states.values["a"] = value
        turn(live_topics, clock)
        quick.poll()
    assert [event for event, _ in said(slow)] == ["slow"]
    assert slow.ended
    assert not quick.ended


def test_what_cannot_be_answered_is_a_state_too(
    live_topics: LiveTopics, states: States, clock: Clock
) -> None:
    subscriber = live_topics.subscribe(["a"])
    states.values["a"] = NotReady("view 'a' is being built")
    turn(live_topics, clock)
    turn(live_topics, clock)
    first, waits = subscriber.poll()
    states.values["a"] = ValueError("a defect")
    turn(live_topics, clock)
    states.values["a"] = 2
    turn(live_topics, clock)
    defect, last = subscriber.poll()
    assert (_data(first), _data(last)) == (1, 2)
    assert msgspec.json.decode(waits.data)["error"]["condition"] == "NotReady"
    assert msgspec.json.decode(defect.data)["error"]["condition"] == "InternalError"


def test_what_could_not_be_answered_is_asked_again_though_nothing_has_moved(
    live_topics: LiveTopics, states: States, clock: Clock
) -> None:
    states.marks["a"], states.values["a"] = "here", NotReady("view 'a' is being built")
    subscriber = live_topics.subscribe(["a"])
    assert "error" in msgspec.json.decode(subscriber.poll()[0].data)
    states.values["a"] = 2
    turn(live_topics, clock)
    assert [_data(event) for event in subscriber.poll()] == [2]


def test_nothing_is_computed_when_nobody_hears(
    live_topics: LiveTopics, states: States, clock: Clock
) -> None:
    live_topics.subscribe(["a"]).close()
    turn(live_topics, clock)
    assert states.asked == ["a"]
    assert live_topics.broadcast.subscribers_count == 0


def test_unknown_topics_and_too_many_subscribers_are_refused(live_topics: LiveTopics) -> None:
    with pytest.raises(NotFound, match="no live topic 'c'"):
        live_topics.subscribe(["a", "c"])
    for _ in range(3):
        live_topics.subscribe(["a"])
    with pytest.raises(Overloaded, match="more than 3 subscriptions are open"):
        live_topics.subscribe(["b"])


def test_everybody_hears_the_end(live_topics: LiveTopics) -> None:
    subscriber = live_topics.subscribe(["a", "b"])
    live_topics.broadcast.stop()
    assert said(subscriber)[-1] == ("end", {"reason": "the project is shutting down"})
    assert subscriber.ended
    with pytest.raises(Unavailable):
        live_topics.subscribe(["a"])
