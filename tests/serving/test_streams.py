"""Subscriptions to streams: where they begin, what they share, and that they fail apart."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from headrace.compile.stream_subscription import SubscribedStream
from headrace.core.errors import BadQuery, LimitReached, Unavailable
from headrace.core.position import Position, PositionRange
from headrace.define.settings import SubscribeSettings
from headrace.serving.hub import Hub
from headrace.serving.stream_feed import WAITING_MAX, StreamRow, StreamSource
from headrace.serving.subscriber import Subscriber, SubscriptionEvent
from tests.run.waiting import wait

from .bench import Bench
from .streams_bench import Held


class Place:
    """Subscriptions over one held source, which may be told what to do when it is read."""

    def __init__(self, folder: Path) -> None:
        self.held, self.opened = Held(), 0
        self.during: Callable[[], None] = lambda: None
        self.bench = Bench(folder / "serving.db")
        self.bench.build()
        self.hub = Hub(self.bench.store.db, SubscribeSettings(), self._open)
        self.broadcast = self.hub.broadcast
        self.held.appended = partial(self.broadcast.notify, "clicks")

    def _open(self, known: SubscribedStream) -> StreamSource:
        self.opened += 1
        return self

    def end(self) -> Position:
        return self.held.end()

    def read(self, range: PositionRange) -> tuple[PositionRange, Sequence[StreamRow]]:
        self.during()
        return self.held.read(range)

    def subscribe(self, text: str, after: str | None = None, user: str = "ann") -> Subscriber:
        return self.hub.subscribe(f"SUBSCRIBE TO {text}", after, user=user)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    for number in range(3):
        made.held.send(0, number)
    yield made
    made.broadcast.stop()
    made.bench.close()


def poll(subscriber: Subscriber, many: int) -> list[SubscriptionEvent]:
    found: list[SubscriptionEvent] = []
    wait(lambda: len(found.extend(subscriber.poll(0.1)) or found) >= many, seconds=10)
    return found


def test_it_begins_now_or_at_the_beginning_or_after_what_was_heard(place: Place) -> None:
    now, whole = place.subscribe("clicks"), place.subscribe("clicks FROM BEGINNING")
    after = place.subscribe("clicks FROM BEGINNING", "2,0")
    assert poll(now, 1)[0].id == "3,0"
    assert [one.id for one in poll(whole, 2)] == ["0,0", "3,0"]
    assert [one.data.get("rows") for one in poll(after, 2)] == [None, [{"n": 2}]]
    place.held.send(1, 7)
    for subscriber in (now, whole, after):
        assert poll(subscriber, 1)[0] == SubscriptionEvent(
            "rows", {"rows": [{"n": 7}], "ends": ["3,1"]}, "3,1"
        )


@pytest.mark.parametrize(
    ("after", "sentence"),
    [
        ("3", "'3' is not a position of 'clicks'"),
        ("yesterday", "'yesterday' is not a position of 'clicks'"),
        ("3,1", "position 3,1 is beyond the end of stream 'clicks' at 3,0"),
    ],
)
def test_a_position_that_is_not_one_of_the_stream_gets_a_sentence(
    place: Place, after: str, sentence: str
) -> None:
    with pytest.raises(BadQuery) as refused:
        place.subscribe("clicks", after)
    assert refused.value.message == sentence
    assert refused.value.hint is not None


def test_equal_texts_share_a_thread_that_ends_with_the_last_of_them(place: Place) -> None:
    one, other = place.subscribe("clicks"), place.subscribe("CLICKS FROM BEGINNING")
    third = place.subscribe("clicks WHERE ms > 1")
    assert (place.opened, place.broadcast.subscribers_count, len(place.broadcast.workers)) == (
        2,
        3,
        2,
    )
    one.close()
    other.close()
    wait(lambda: len(place.broadcast.workers) == 1, seconds=10)
    assert place.broadcast.subscribers_count == 1
    third.close()
    assert not place.broadcast.topics
    wait(lambda: not place.broadcast.workers, seconds=10)
    assert poll(place.subscribe("clicks", "0,0"), 2)[1].id == "3,0", "a new one begins anew"


def test_what_spark_computes_is_computed_for_each_user(place: Place) -> None:
    for user in ("ada", "bob"):
        place.subscribe("clicks", user=user)
        place.subscribe("clicks WHERE ms > 1", user=user)
        place.subscribe("clicks WHERE ms > 1", user=user)
    known = [key for key in place.broadcast.topics if isinstance(key, SubscribedStream)]
    assert [(one.condition, one.user) for one in known] == [
        ("", ""), ("ms > 1", "ada"), ("ms > 1", "bob"),
    ]  # fmt: skip


def test_a_slow_turn_of_one_text_keeps_no_other_waiting(place: Place) -> None:
    go = threading.Event()
    slow = place.subscribe("clicks WHERE ms > 1")
    poll(slow, 1)
    place.during = lambda: threading.current_thread() is first and go.wait(10) and None
    first = place.broadcast.workers[0]._thread
    quick = place.subscribe("clicks", "0,0")
    assert poll(quick, 2)[1].id == "3,0"
    place.held.send(0, 9)
    assert poll(quick, 1)[0].id == "4,0"
    assert slow.poll() == []
    go.set()
    assert poll(slow, 1)[0].id == "4,0"


def test_what_is_unavailable_is_tried_again(place: Place) -> None:
    failures = [Unavailable("the ad-hoc query process exited"), Unavailable("again")]

    def fail() -> None:
        if failures:
            raise failures.pop()

    place.during = fail
    assert poll(place.subscribe("clicks", "1,0"), 2)[1].data["rows"] == [{"n": 1}, {"n": 2}]
    assert failures == []


def test_a_text_that_fails_tells_its_subscribers_and_nobody_else(place: Place) -> None:
    def fail() -> None:
        raise LimitReached("an event has too many rows")

    hurt = place.subscribe("clicks")
    poll(hurt, 1)
    place.during = fail
    place.held.send(0, 4)
    failed = poll(hurt, 1)[0]
    assert (failed.event, failed.data["condition"]) == ("failed", "LimitReached")
    assert hurt.ended
    place.during = lambda: None
    assert poll(place.subscribe("clicks", "3,0"), 2)[1].id == "4,0"


def test_a_defect_is_not_told_in_its_own_words(place: Place) -> None:
    place.during = lambda: 1 // 0 and None
    hurt = place.subscribe("clicks", "0,0")
    assert poll(hurt, 2)[1].data["message"] == (
        "the subscription to 'clicks' failed with an unexpected error"
    )


def test_stop_is_the_last_that_everybody_hears(place: Place) -> None:
    subscriber = place.subscribe("clicks", "3,0")
    place.broadcast.stop()
    assert [one.event for one in subscriber.poll()] == ["position", "end"]
    assert not any(worker.alive for worker in place.broadcast.workers)


def test_one_who_did_not_keep_up_is_read_on_for_when_it_has_taken(place: Place) -> None:
    place.held.events_max = 1  # a message for each
    slow = place.subscribe("clicks FROM BEGINNING")
    for number in range(3, 200):
        place.held.send(0, number)
    wait(lambda: slow.waiting == WAITING_MAX, seconds=10)
    found = list[int]()
    while len(found) < 200:
        taken = slow.poll(10)
        assert taken, "nothing more came, though there was room"
        found += [row["n"] for one in taken for row in one.data.get("rows", ())]
    assert found == list(range(200))
