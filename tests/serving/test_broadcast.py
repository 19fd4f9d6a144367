"""A broadcast: told at commits, once for all, without loss, and nothing left of who went away."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.core import worker
from headrace.core.errors import LimitReached, Overloaded, Unavailable
from headrace.core.time import SECOND, now_us
from headrace.serving.broadcast import Broadcast, Lane
from headrace.serving.sqlite import SqliteDatabase
from headrace.serving.subscriber import Subscriber
from tests.run.waiting import wait

from .broadcast_bench import CountingTopic


@pytest.fixture
def db(tmp_path: Path) -> Iterator[SqliteDatabase]:
    made = SqliteDatabase(tmp_path / "serving.db")
    made.take_over()
    yield made
    made.close()


@pytest.fixture
def broadcast(db: SqliteDatabase) -> Iterator[Broadcast]:
    made = Broadcast("subscribe", 3, db.changes)
    yield made
    made.stop()


def commit(db: SqliteDatabase) -> None:
    with db.write():
        pass


def settled(subscriber: Subscriber) -> None:
    """Hear the beginning of a new topic, and the look that follows it."""
    wait(lambda: any(heard.data for heard in subscriber.poll(1)))


def test_a_commit_is_looked_for_at_once_and_once_for_all(
    db: SqliteDatabase, broadcast: Broadcast
) -> None:
    topic, rung = CountingTopic(broadcast), list[int]()
    first = topic.subscribe(lambda: rung.append(1))
    settled(first)
    second = topic.subscribe()
    for subscriber in (first, second):
        wait(lambda one=subscriber: any(heard.data == 2 for heard in one.poll(1)))
    rung.clear()
    commit(db)
    for subscriber in (first, second):
        assert [heard.data for heard in subscriber.poll(10)] == [3]
    assert rung == [1]


def test_nothing_is_looked_for_while_nothing_is_committed(
    db: SqliteDatabase, broadcast: Broadcast
) -> None:
    subscriber = (topic := CountingTopic(broadcast)).subscribe()
    settled(subscriber)
    assert subscriber.poll(0.5) == []
    with pytest.raises(ValueError, match="no"), db.write():
        raise ValueError("no")
    assert subscriber.poll(0.5) == [], "it was taken back"
    assert topic.refreshes == 1


def test_a_commit_during_a_look_is_looked_for_after_it(
    db: SqliteDatabase, broadcast: Broadcast
) -> None:
    topic, seen = CountingTopic(broadcast), list[int]()

    def during() -> None:
        seen.append(db.changes.newest)  # what this look speaks for
        if len(seen) <= 3:
            commit(db)

    topic.during = during
    topic.subscribe()
    wait(lambda: len(seen) == 4)
    assert seen[-1] == db.changes.newest


def test_a_refresh_that_fails_is_repeated_without_another_commit(
    broadcast: Broadcast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "RETRY_MIN_S", 0.001)
    topic, fails = CountingTopic(broadcast), [SystemExit("out of threads")]

    def during() -> None:
        if fails:
            raise fails.pop()

    topic.during = during
    topic.subscribe()
    wait(lambda: topic.refreshes == 1, 10)
    wait(lambda: [one.problem for one in broadcast.workers] == [None], 10)


def test_the_writer_does_not_wait_for_looks(db: SqliteDatabase, broadcast: Broadcast) -> None:
    looking, go = threading.Event(), threading.Event()
    topic = CountingTopic(broadcast)
    topic.during = lambda: looking.set() or (go.wait(10) and None)
    topic.subscribe()
    assert looking.wait(10)
    commit(db)
    assert topic.refreshes == 0
    go.set()
    wait(lambda: topic.refreshes >= 2)


def test_what_is_told_was_committed_and_published_before(
    db: SqliteDatabase, broadcast: Broadcast
) -> None:
    order = list[str]()
    db.changes.commit_hook = lambda transaction: lambda: order.append("published")
    db.changes.subscribe(lambda: order.append(f"told {db.changes.newest}"))
    commit(db)
    assert order == ["published", f"told {db.changes.newest}"]
    db.changes.commit_hook = None


def test_a_subscriber_misses_no_look_after_its_beginning(
    db: SqliteDatabase, broadcast: Broadcast
) -> None:
    topic, stop = CountingTopic(broadcast), threading.Event()
    keeps = topic.subscribe()  # so that the topic stays

    def write() -> None:
        while not stop.is_set():
            commit(db)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(20):
            subscriber = topic.subscribe()
            heard = list[int]()
            wait(
                lambda h=subscriber, got=heard: (
                    len(got.extend(e.data for e in h.poll(1)) or got) > 3
                )
            )
            assert heard == list(range(heard[0], heard[0] + len(heard)))
            subscriber.close()
            keeps.poll()
    finally:
        stop.set()
        writer.join()


def test_an_append_is_told_to_the_topics_of_its_stream_alone(
    db: SqliteDatabase, broadcast: Broadcast
) -> None:
    clicks, other = (
        CountingTopic(broadcast, Lane("stream", name)) for name in ("clicks", "orders")
    )
    subscribers = [clicks.subscribe(), other.subscribe()]
    for subscriber in subscribers:
        settled(subscriber)
    broadcast.notify("clicks")
    assert [heard.data for heard in subscribers[0].poll(10)] == [2]
    commit(db)
    assert subscribers[1].poll(0.3) == []


def test_a_topic_that_is_due_is_looked_at_without_a_commit(broadcast: Broadcast) -> None:
    topic = CountingTopic(broadcast)
    topic.during = lambda: now_us() + SECOND // 50
    subscriber, found = topic.subscribe(), 0
    while found < 4:
        found += len(subscriber.poll(10))


def test_a_slow_look_of_one_lane_keeps_no_other_waiting(
    db: SqliteDatabase, broadcast: Broadcast
) -> None:
    looking, go = threading.Event(), threading.Event()
    slow, quick = CountingTopic(broadcast, Lane("slow")), CountingTopic(broadcast, Lane("quick"))
    slow.during = lambda: looking.set() or (go.wait(10) and None)
    slow.subscribe()
    assert looking.wait(10)
    settled(quick.subscribe())
    assert slow.refreshes == 0
    go.set()


def test_many_commits_are_few_looks_where_a_look_takes_long(
    db: SqliteDatabase, broadcast: Broadcast
) -> None:
    def during() -> None:
        threading.Event().wait(0.05)

    topic, began = CountingTopic(broadcast, during=during), time.monotonic()
    topic.subscribe()
    while time.monotonic() - began < 0.6:
        commit(db)
    took = time.monotonic() - began
    assert topic.refreshes <= took / 0.1 + 1, "it rests as long as it looks"


def test_who_goes_away_leaves_neither_topic_nor_thread(
    db: SqliteDatabase, broadcast: Broadcast
) -> None:
    topic = CountingTopic(broadcast)
    first, second = topic.subscribe(), topic.subscribe()
    (worker,) = broadcast.workers
    first.close()
    assert broadcast.subscribers_count == 1
    second.close()
    assert (broadcast.subscribers_count, broadcast.topics) == (0, {})
    wait(lambda: not worker.alive and not broadcast.workers)
    again = topic.subscribe()
    commit(db)
    wait(lambda: len(again.poll(1)) > 0)


def test_a_topic_lingers_for_those_who_come_back(db: SqliteDatabase) -> None:
    now = [SECOND]
    broadcast = Broadcast("subscribe", 3, db.changes, lambda: now[0])
    topic = CountingTopic(broadcast, linger_us=10 * SECOND)
    topic.subscribe().close()
    now[0] += 9 * SECOND
    broadcast.refresh_lane(topic.lane)
    assert topic in broadcast.topics.values()
    topic.subscribe().close()
    now[0] += 9 * SECOND
    broadcast.refresh_lane(topic.lane)
    assert topic in broadcast.topics.values(), "it counts from when the last one went"
    now[0] += SECOND
    assert broadcast.refresh_lane(topic.lane) is None
    assert broadcast.topics == {}
    broadcast.stop()


def test_who_cannot_begin_leaves_nothing(broadcast: Broadcast) -> None:
    def refuse(topic: CountingTopic) -> None:
        raise LimitReached("it has nowhere to begin")

    with pytest.raises(LimitReached):
        broadcast.subscribe({"topic": lambda: CountingTopic(broadcast)}, refuse)
    assert (broadcast.topics, broadcast.workers) == ({}, [])


def test_a_look_that_fails_is_the_end_of_its_topic_alone(
    db: SqliteDatabase, broadcast: Broadcast
) -> None:
    hurt, well = CountingTopic(broadcast, name="hurt"), CountingTopic(broadcast)
    ill, sound = hurt.subscribe(), well.subscribe()
    for subscriber in (ill, sound):
        settled(subscriber)
    hurt.during = lambda: 1 // 0
    commit(db)
    wait(lambda: ill.ended)
    failed = ill.poll()[-1]
    assert (failed.event, failed.data["condition"]) == ("failed", "InternalError")
    assert "the subscription to 'hurt' failed" in failed.data["message"]
    assert {heard.event for heard in sound.poll(10)} == {"count"}
    assert (sound.ended, broadcast.subscribers_count) == (False, 1)


def test_a_look_that_fails_late_ends_nothing_that_has_followed_its_topic(
    db: SqliteDatabase, broadcast: Broadcast
) -> None:
    looking, go = threading.Event(), threading.Event()

    def during() -> None:
        looking.set()
        go.wait(10)
        raise LimitReached("the first of both")

    first, second = (
        CountingTopic(broadcast, during=during, key="text"),
        CountingTopic(broadcast, key="text"),
    )
    left = first.subscribe()
    assert looking.wait(10)
    left.close()
    subscriber = second.subscribe()
    go.set()
    settled(subscriber)
    commit(db)
    assert [heard.event for heard in subscriber.poll(10)] == ["count"]


def test_what_is_unavailable_is_tried_again_without_a_commit(broadcast: Broadcast) -> None:
    topic, failures = CountingTopic(broadcast), [Unavailable("once"), Unavailable("twice")]

    def during() -> None:
        if failures:
            raise failures.pop()

    topic.during = during
    settled(topic.subscribe())
    assert failures == []


def test_more_subscribers_than_the_limit_are_refused_until_one_leaves(broadcast: Broadcast) -> None:
    topic = CountingTopic(broadcast)
    first, *_ = [topic.subscribe() for _ in range(3)]
    with pytest.raises(Overloaded) as refused:
        CountingTopic(broadcast).subscribe()
    assert refused.value.message == "more than 3 subscriptions are open"
    assert refused.value.hint == "close one, or raise subscribe.connections_max."
    first.close()
    topic.subscribe()


def test_after_the_end_nobody_is_told_and_nothing_runs(
    db: SqliteDatabase, broadcast: Broadcast
) -> None:
    topic = CountingTopic(broadcast)
    subscriber = topic.subscribe()
    workers = broadcast.workers
    broadcast.stop()
    assert subscriber.poll()[-1].data == {"reason": "the project is shutting down"}
    assert subscriber.ended
    assert not any(worker.alive for worker in workers)
    assert db.changes._listeners == ()
    with pytest.raises(Unavailable):
        topic.subscribe()


def test_a_commit_of_another_process_is_not_told(db: SqliteDatabase, broadcast: Broadcast) -> None:
    """Who subscribes there does so over HTTP; see headrace/run/offline.py."""
    subscriber = CountingTopic(broadcast).subscribe()
    settled(subscriber)
    with sqlite3.connect(db.path) as other:
        other.execute("INSERT INTO _meta VALUES ('another', 'process')")
    other.close()
    assert subscriber.poll(0.3) == []
    commit(db)
    assert len(subscriber.poll(10)) == 1
