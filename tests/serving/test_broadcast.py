"""A broadcast: told at commits, once for all, without loss, and nothing left of who went away."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.core.errors import LimitReached, Overloaded, Unavailable
from headrace.core.time import SECOND, now_us
from headrace.serving.broadcast import Broadcast, Lane
from headrace.serving.hearer import Hearer
from headrace.serving.sqlite import Sqlite
from tests.run.waiting import wait

from .broadcast_bench import Looked


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Sqlite]:
    made = Sqlite(tmp_path / "serving.db")
    made.take_over()
    yield made
    made.close()


@pytest.fixture
def broadcast(db: Sqlite) -> Iterator[Broadcast]:
    made = Broadcast("subscribe", 3, db.changes)
    yield made
    made.stop()


def commit(db: Sqlite) -> None:
    with db.write():
        pass


def settled(hearer: Hearer) -> None:
    """Hear the beginning of a new topic, and the look that follows it."""
    wait(lambda: any(heard.data for heard in hearer.take(1)))


def test_a_commit_is_looked_for_at_once_and_once_for_all(db: Sqlite, broadcast: Broadcast) -> None:
    topic, rung = Looked(broadcast), list[int]()
    first = topic.join(lambda: rung.append(1))
    settled(first)
    second = topic.join()
    for hearer in (first, second):
        wait(lambda one=hearer: any(heard.data == 2 for heard in one.take(1)))
    rung.clear()
    commit(db)
    for hearer in (first, second):
        assert [heard.data for heard in hearer.take(10)] == [3]
    assert rung == [1]


def test_nothing_is_looked_for_while_nothing_is_committed(db: Sqlite, broadcast: Broadcast) -> None:
    hearer = (topic := Looked(broadcast)).join()
    settled(hearer)
    assert hearer.take(0.5) == []
    with pytest.raises(ValueError, match="no"), db.write():
        raise ValueError("no")
    assert hearer.take(0.5) == [], "it was taken back"
    assert topic.looks == 1


def test_a_commit_during_a_look_is_looked_for_after_it(db: Sqlite, broadcast: Broadcast) -> None:
    topic, seen = Looked(broadcast), list[int]()

    def during() -> None:
        seen.append(db.changes.newest)  # what this look speaks for
        if len(seen) <= 3:
            commit(db)

    topic.during = during
    topic.join()
    wait(lambda: len(seen) == 4)
    assert seen[-1] == db.changes.newest


def test_the_writer_does_not_wait_for_looks(db: Sqlite, broadcast: Broadcast) -> None:
    looking, go = threading.Event(), threading.Event()
    topic = Looked(broadcast)
    topic.during = lambda: looking.set() or (go.wait(10) and None)
    topic.join()
    assert looking.wait(10)
    commit(db)
    assert topic.looks == 0
    go.set()
    wait(lambda: topic.looks >= 2)


def test_what_is_told_was_committed_and_published_before(db: Sqlite, broadcast: Broadcast) -> None:
    order = list[str]()
    db.changes.follower = lambda transaction: lambda: order.append("published")
    db.changes.subscribe(lambda: order.append(f"told {db.changes.newest}"))
    commit(db)
    assert order == ["published", f"told {db.changes.newest}"]
    db.changes.follower = None


def test_a_subscriber_misses_no_look_after_its_beginning(db: Sqlite, broadcast: Broadcast) -> None:
    topic, stop = Looked(broadcast), threading.Event()
    keeps = topic.join()  # so that the topic stays

    def write() -> None:
        while not stop.is_set():
            commit(db)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(20):
            hearer = topic.join()
            heard = list[int]()
            wait(lambda h=hearer, got=heard: len(got.extend(e.data for e in h.take(1)) or got) > 3)
            assert heard == list(range(heard[0], heard[0] + len(heard)))
            hearer.close()
            keeps.take()
    finally:
        stop.set()
        writer.join()


def test_an_append_is_told_to_the_topics_of_its_stream_alone(
    db: Sqlite, broadcast: Broadcast
) -> None:
    clicks, other = (Looked(broadcast, Lane("stream", name)) for name in ("clicks", "orders"))
    hearers = [clicks.join(), other.join()]
    for hearer in hearers:
        settled(hearer)
    broadcast.tell("clicks")
    assert [heard.data for heard in hearers[0].take(10)] == [2]
    commit(db)
    assert hearers[1].take(0.3) == []


def test_a_topic_that_is_due_is_looked_at_without_a_commit(broadcast: Broadcast) -> None:
    topic = Looked(broadcast)
    topic.during = lambda: now_us() + SECOND // 50
    hearer, found = topic.join(), 0
    while found < 4:
        found += len(hearer.take(10))


def test_a_slow_look_of_one_lane_keeps_no_other_waiting(db: Sqlite, broadcast: Broadcast) -> None:
    looking, go = threading.Event(), threading.Event()
    slow, quick = Looked(broadcast, Lane("slow")), Looked(broadcast, Lane("quick"))
    slow.during = lambda: looking.set() or (go.wait(10) and None)
    slow.join()
    assert looking.wait(10)
    settled(quick.join())
    assert slow.looks == 0
    go.set()


def test_many_commits_are_few_looks_where_a_look_takes_long(
    db: Sqlite, broadcast: Broadcast
) -> None:
    def during() -> None:
        threading.Event().wait(0.05)

    topic, began = Looked(broadcast, during=during), time.monotonic()
    topic.join()
    while time.monotonic() - began < 0.6:
        commit(db)
    took = time.monotonic() - began
    assert topic.looks <= took / 0.1 + 1, "it rests as long as it looks"


def test_who_goes_away_leaves_neither_topic_nor_thread(db: Sqlite, broadcast: Broadcast) -> None:
    topic = Looked(broadcast)
    first, second = topic.join(), topic.join()
    (worker,) = broadcast.workers
    first.close()
    assert broadcast.subscribers == 1
    second.close()
    assert (broadcast.subscribers, broadcast.topics) == (0, {})
    wait(lambda: not worker.alive and not broadcast.workers)
    again = topic.join()
    commit(db)
    wait(lambda: len(again.take(1)) > 0)


def test_a_topic_lingers_for_those_who_come_back(db: Sqlite) -> None:
    now = [SECOND]
    broadcast = Broadcast("subscribe", 3, db.changes, lambda: now[0])
    topic = Looked(broadcast, linger_us=10 * SECOND)
    topic.join().close()
    now[0] += 9 * SECOND
    broadcast.turn(topic.lane)
    assert topic in broadcast.topics.values()
    topic.join().close()
    now[0] += 9 * SECOND
    broadcast.turn(topic.lane)
    assert topic in broadcast.topics.values(), "it counts from when the last one went"
    now[0] += SECOND
    assert broadcast.turn(topic.lane) is None
    assert broadcast.topics == {}
    broadcast.stop()


def test_who_cannot_begin_leaves_nothing(broadcast: Broadcast) -> None:
    def refuse(topic: Looked) -> None:
        raise LimitReached("it has nowhere to begin")

    with pytest.raises(LimitReached):
        broadcast.join({"topic": lambda: Looked(broadcast)}, refuse)
    assert (broadcast.topics, broadcast.workers) == ({}, [])


def test_a_look_that_fails_is_the_end_of_its_topic_alone(db: Sqlite, broadcast: Broadcast) -> None:
    hurt, well = Looked(broadcast, name="hurt"), Looked(broadcast)
    ill, sound = hurt.join(), well.join()
    for hearer in (ill, sound):
        settled(hearer)
    hurt.during = lambda: 1 // 0
    commit(db)
    wait(lambda: ill.ended)
    failed = ill.take()[-1]
    assert (failed.event, failed.data["condition"]) == ("failed", "InternalError")
    assert "the subscription to 'hurt' met a problem" in failed.data["message"]
    assert {heard.event for heard in sound.take(10)} == {"look"}
    assert (sound.ended, broadcast.subscribers) == (False, 1)


def test_a_look_that_fails_late_ends_nothing_that_has_followed_its_topic(
    db: Sqlite, broadcast: Broadcast
) -> None:
    looking, go = threading.Event(), threading.Event()

    def during() -> None:
        looking.set()
        go.wait(10)
        raise LimitReached("the first of both")

    first, second = Looked(broadcast, during=during, key="text"), Looked(broadcast, key="text")
    left = first.join()
    assert looking.wait(10)
    left.close()
    hearer = second.join()
    go.set()
    settled(hearer)
    commit(db)
    assert [heard.event for heard in hearer.take(10)] == ["look"]


def test_what_is_unavailable_is_tried_again_without_a_commit(broadcast: Broadcast) -> None:
    topic, failures = Looked(broadcast), [Unavailable("once"), Unavailable("twice")]

    def during() -> None:
        if failures:
            raise failures.pop()

    topic.during = during
    settled(topic.join())
    assert failures == []


def test_more_subscribers_than_the_limit_are_refused_until_one_leaves(broadcast: Broadcast) -> None:
    topic = Looked(broadcast)
    first, *_ = [topic.join() for _ in range(3)]
    with pytest.raises(Overloaded) as refused:
        Looked(broadcast).join()
    assert refused.value.message == "more than 3 subscriptions are open"
    assert refused.value.hint == "close one, or raise subscribe.connections_max."
    first.close()
    topic.join()


def test_after_the_end_nobody_is_told_and_nothing_runs(db: Sqlite, broadcast: Broadcast) -> None:
    topic = Looked(broadcast)
    hearer = topic.join()
    workers = broadcast.workers
    broadcast.stop()
    assert hearer.take()[-1].data == {"reason": "the project is stopping"}
    assert hearer.ended
    assert not any(worker.alive for worker in workers)
    assert db.changes._told == ()
    with pytest.raises(Unavailable):
        topic.join()


def test_a_commit_of_another_process_is_not_told(db: Sqlite, broadcast: Broadcast) -> None:
    """Who subscribes there does so over HTTP; see headrace/run/offline.py."""
    hearer = Looked(broadcast).join()
    settled(hearer)
    with sqlite3.connect(db.path) as other:
        other.execute("INSERT INTO _meta VALUES ('another', 'process')")
    other.close()
    assert hearer.take(0.3) == []
    commit(db)
    assert len(hearer.take(10)) == 1
