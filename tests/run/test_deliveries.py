"""One queue with a held clock: pauses, the end of attempts, order, and what is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from headrace.core.errors import Conflict, DiskFull
from headrace.core.problems import ProblemKey
from headrace.core.subscription import Guarantee
from headrace.core.time import MINUTE, SECOND
from headrace.define.settings import NotifySettings
from headrace.destination.file import FileDestination
from headrace.destination.protocol import DestinationWriter, Message, Undeliverable
from headrace.run.queue_delivery import DeliveryRoute, QueueDelivery
from headrace.serving.alert_metrics import read_alert_metrics
from headrace.serving.notifications import fail_orphaned
from headrace.serving.outbox import _DUE_QUEUES, Queue, due_queues, put_panes
from headrace.serving.sinks import count_panes, open_state
from tests.serving.bench import Click
from tests.serving.rule_bench import SLOW, RuleBench

ROUTE = DeliveryRoute.of_notification(FileDestination("a.ndjson"))


class Door(DestinationWriter):
    """A writer that raises what it is told to, or takes what it is given."""

    batch_max = 2

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.took: list[str] = []
        self.calls = 0

    def deliver(self, messages: Sequence[Message]) -> None:
        self.calls += 1
        if self.error:
            raise self.error
        self.took += [message.key for message in messages]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[RuleBench]:
    made = RuleBench(tmp_path / "serving.db", rules=f"{SLOW} NOTIFY FILE 'a.ndjson'")
    made.build()
    made.look()
    made.send(*(Click("/a", f"u{n}", n, 99) for n in range(3)))
    made.look()
    yield made
    made.close()


def deliveries(bench: RuleBench, door: Door, **said: int) -> QueueDelivery:
    settings = NotifySettings(pause_us=SECOND, pause_max_us=MINUTE, **said)
    return QueueDelivery(ROUTE, door, bench.store.db, settings, bench.clock)


def states(bench: RuleBench) -> list[tuple[str, int, str | None]]:
    with bench.store.read() as db:
        sql = "SELECT state, attempts, reason FROM _outbox ORDER BY number"
        return db.execute(sql).fetchall()


def test_notices_are_taken_in_order_and_some_at_once(bench: RuleBench) -> None:
    door = Door()
    queue = deliveries(bench, door)
    assert [queue.step(), queue.step(), queue.step()] == [True, True, False]
    assert door.took == [alert.id for alert in bench.alerts()]
    assert states(bench) == [("delivered", 1, None)] * 3


def test_pauses_double_up_to_a_limit_and_attempts_end(bench: RuleBench) -> None:
    door, pauses = Door(), []
    door.error = ConnectionError("the response status is 500")
    queue = deliveries(bench, door, attempts_max=9)
    began = last = bench.clock()
    for _ in range(400):
        before = door.calls
        while queue.step():
            pass
        if door.calls > before:
            pauses.append((bench.clock() - last) // SECOND)
            last = bench.clock()
        bench.clock.now_us += SECOND
    assert pauses == [0, 1, 2, 4, 8, 16, 32, 60, 60]
    assert states(bench) == [("failed", 9, "the response status is 500")] * 3
    assert queue.problem is not None
    assert queue.problem.message == "file a.ndjson was not notified: the response status is 500"
    assert bench.clock() > began


def test_queues_with_something_due_are_found_without_reading_all_that_waits(
    bench: RuleBench,
) -> None:
    now = bench.clock()
    with bench.store.write() as db:
        db.executemany(
            "INSERT INTO _outbox SELECT NULL, ?1, key, NULL, rule, alerts, body, ?2, 0, ?3, NULL, "
            "NULL, queued_at FROM _outbox WHERE queue = 'file a.ndjson'",
            [
                ("call later", "waiting", now + 1),
                ("call now", "waiting", now),
                ("stream done", "delivered", now),
            ],
        )
        assert due_queues(db, now) == ["call now", "file a.ndjson"]
        steps = db.execute(f"EXPLAIN QUERY PLAN {_DUE_QUEUES}", (now,)).fetchall()
        assert not [step for *_, step in steps if step.startswith("SCAN _outbox")]
        db.execute("DELETE FROM _outbox")
        assert due_queues(db, now) == []


def test_one_that_waits_does_not_hold_up_others(bench: RuleBench) -> None:
    door = Door()
    door.error = ConnectionError("the response status is 500")
    queue = deliveries(bench, door)
    queue.step()
    door.error = None
    queue.step()
    assert door.took == [bench.alerts()[2].id], "two of three wait for their turn"
    assert queue.problem is None
    bench.clock.now_us += SECOND
    queue.step()
    assert sorted(door.took) == sorted(alert.id for alert in bench.alerts())


def test_what_is_refused_for_good_is_not_tried_again(bench: RuleBench) -> None:
    door = Door()
    door.error = Undeliverable("the response status is 410")
    queue = deliveries(bench, door)
    while queue.step():
        pass
    assert states(bench) == [("failed", 1, "the response status is 410")] * 3


def test_an_alert_whose_id_the_stream_has_is_delivered(bench: RuleBench) -> None:
    door = Door()
    door.error = Conflict("stream 'told' already has other events with the ids of 2 panes")
    queue = deliveries(bench, door)
    while queue.step():
        pass
    assert states(bench) == [("delivered", 1, None)] * 3
    assert queue.problem is None


def full(*_: object) -> None:
    raise DiskFull("the disk is full")


def test_while_the_store_cannot_be_written_little_comes_again(
    bench: RuleBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = Door()
    queue = deliveries(bench, door)
    with monkeypatch.context() as patch:
        patch.setattr(Queue, "delivered", full)
        pauses = []
        for _ in range(16):
            before = door.calls
            if not queue.backing_off:
                queue.drain()
            pauses.append(door.calls - before)
            bench.clock.now_us += SECOND
    assert pauses == [1, 1, 0, 1, 0, 0, 0, 1, *[0] * 7, 1], "after 1, 2, 4 and 8 seconds"
    assert queue.problem is not None
    assert queue.problem.message == "file a.ndjson was not notified: the disk is full"
    bench.clock.now_us += MINUTE
    queue.drain()
    assert (queue.problem, queue.must_retry) == (None, False)
    assert states(bench) == [("delivered", 1, None)] * 3


def test_a_store_that_could_not_be_read_is_no_problem_when_it_can(
    bench: RuleBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = deliveries(bench, Door())
    queue.drain()
    with monkeypatch.context() as patch:
        patch.setattr(Queue, "due", full)
        queue.drain()
    assert (queue.problem is not None, queue.must_retry) == (True, True)
    bench.clock.now_us += SECOND
    queue.drain()
    assert (queue.problem, queue.must_retry) == (None, False)


def test_a_failure_after_the_store_is_back_is_told(
    bench: RuleBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = Door()
    queue = deliveries(bench, door)
    with monkeypatch.context() as patch:
        patch.setattr(Queue, "due", full)
        queue.drain()
    bench.clock.now_us += SECOND
    door.error = ConnectionError("the response status is 500")
    queue.drain()
    assert queue.problem is not None
    assert queue.problem.message == "file a.ndjson was not notified: the response status is 500"


def test_what_ends_a_thread_is_a_problem_and_not_tried_at_once(bench: RuleBench) -> None:
    door = Door()
    door.error = SystemExit(1)
    queue = deliveries(bench, door)
    queue.drain()
    assert queue.problem is not None
    assert queue.problem.message == "file a.ndjson was not notified: SystemExit: 1"
    assert queue.backing_off


# Panes


class Kept(Door):
    """A destination that knows which panes it has."""

    def deliver(self, messages: Sequence[Message]) -> None:
        super().deliver(messages)
        self.took = [key.rpartition(":")[2] for key in self.took]

    def newest(self) -> int:
        return int(self.took[-1]) if self.took else 0


def sink(bench: RuleBench, door: Door, guarantee: Guarantee, panes: int = 5) -> QueueDelivery:
    account = open_state(bench.store.db, "out", "v1")
    with bench.store.write() as db:
        put_panes(db, "out", [(n, b"{}") for n in range(1, panes + 1)], bench.clock())
        db.execute("UPDATE _sinks SET sequence = ?", (panes,))
    assert account.sequence == 0
    key = ProblemKey("sink", "out", "delivery")
    route = DeliveryRoute(
        "sink out", FileDestination("x"), key, "sink 'out' failed", guarantee, "out"
    )
    settings = NotifySettings(pause_us=MINUTE, attempts_max=1)
    return QueueDelivery(route, door, bench.store.db, settings, bench.clock)


def test_panes_keep_their_order_and_are_never_given_up(bench: RuleBench) -> None:
    door = Kept()
    delivery = sink(bench, door, Guarantee.AT_LEAST_ONCE)
    door.error = Undeliverable("it is dead")
    for _ in range(20):
        assert not delivery.backing_off
        delivery.drain()
        assert delivery.backing_off
        bench.clock.now_us += SECOND
    assert door.calls == 20
    assert delivery.problem is not None
    assert delivery.problem.message == "sink 'out' failed: it is dead"
    door.error = None
    bench.clock.now_us -= 5 * MINUTE  # also if the clock is set back
    with bench.store.write() as db:
        put_panes(db, "out", [(6, b"{}")], bench.clock())
    bench.clock.now_us += 5 * MINUTE
    delivery.drain()
    assert door.took == ["1", "2", "3", "4", "5", "6"]
    assert delivery.problem is None
    with bench.store.read() as db:
        assert db.execute("SELECT count(*) FROM _outbox WHERE sink = 'out'").fetchone() == (0,)


def test_exactly_once_asks_again_what_is_there_after_a_failure(bench: RuleBench) -> None:
    door = Kept()
    delivery = sink(bench, door, Guarantee.EXACTLY_ONCE)
    assert delivery.must_retry
    delivery.step()
    door.took.append("3")  # of a write that was cut in the middle
    door.error = OSError("the disk has a defect")
    delivery.step()
    assert delivery.must_retry
    door.error = None
    bench.clock.now_us += SECOND
    delivery.drain()
    assert door.took == ["1", "2", "3", "4", "5"]


def test_at_most_once_does_not_try_again(bench: RuleBench) -> None:
    door = Kept()
    delivery = sink(bench, door, Guarantee.AT_MOST_ONCE)
    door.error = OSError("the disk has a defect")
    delivery.step()
    door.error = None
    bench.clock.now_us += SECOND
    delivery.drain()
    assert door.took == ["3", "4", "5"]


def test_panes_are_no_notifications(bench: RuleBench) -> None:
    with bench.store.read() as db:
        before = read_alert_metrics(db, bench.clock())
    sink(bench, Kept(), Guarantee.EXACTLY_ONCE)
    with bench.store.read() as db:
        assert read_alert_metrics(db, bench.clock()) == before
    fail_orphaned(bench.store.db, bench.plan.rules, bench.clock())
    with bench.store.read() as db:
        assert count_panes(db, "out") == (5, 0, 5, 0)
