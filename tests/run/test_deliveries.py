"""One queue with a held clock: pauses, the end of attempts, and what is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from headrace.compile.plan import ActionPlan
from headrace.core.time import MINUTE, SECOND
from headrace.define.settings import NotifySettings
from headrace.run.actions.protocol import Undeliverable
from headrace.run.deliveries import Deliveries
from headrace.serving.notices import _DUE_ACTIONS, Notice, due_actions
from tests.serving.bench import Click
from tests.serving.rule_bench import SLOW, RuleBench

PLAN = ActionPlan("file", "a.ndjson")


class Door:
    """An action that raises what it is told to, or takes what it is given."""

    at_once = 2

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.took: list[str] = []
        self.calls = 0

    def deliver(self, notices: Sequence[Notice]) -> None:
        self.calls += 1
        if self.error:
            raise self.error
        self.took += [notice.key for notice in notices]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[RuleBench]:
    made = RuleBench(tmp_path / "serving.db", rules=f"{SLOW} NOTIFY FILE 'a.ndjson'")
    made.build()
    made.look()
    made.send(*(Click("/a", f"u{n}", n, 99) for n in range(3)))
    made.look()
    yield made
    made.close()


def deliveries(bench: RuleBench, door: Door, **said: int) -> Deliveries:
    settings = NotifySettings(pause_us=SECOND, pause_max_us=MINUTE, **said)
    return Deliveries(PLAN, door, bench.store.db, settings, bench.clock)


def states(bench: RuleBench) -> list[tuple[str, int, str | None]]:
    with bench.store.read() as db:
        sql = "SELECT state, attempts, reason FROM _notices ORDER BY number"
        return db.execute(sql).fetchall()


def test_notices_are_taken_in_order_and_some_at_once(bench: RuleBench) -> None:
    door = Door()
    queue = deliveries(bench, door)
    assert [queue.step(), queue.step(), queue.step()] == [True, True, False]
    assert door.took == [alert.id for alert in bench.alerts()]
    assert states(bench) == [("delivered", 1, None)] * 3


def test_pauses_double_up_to_a_limit_and_attempts_end(bench: RuleBench) -> None:
    door, pauses = Door(), []
    door.error = ConnectionError("it answered 500")
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
    assert states(bench) == [("failed", 9, "it answered 500")] * 3
    assert queue.problem == "file a.ndjson was not notified: it answered 500"
    assert bench.clock() > began


def test_actions_with_something_due_are_found_without_reading_all_that_waits(
    bench: RuleBench,
) -> None:
    now = bench.clock()
    with bench.store.write() as db:
        db.executemany(
            "INSERT INTO _notices SELECT NULL, ?1, key, rule, alerts, body, ?2, 0, ?3, NULL, NULL, "
            "queued_at FROM _notices WHERE action = 'file a.ndjson'",
            [
                ("call later", "waiting", now + 1),
                ("call now", "waiting", now),
                ("stream done", "delivered", now),
            ],
        )
        assert due_actions(db, now) == ["call now", "file a.ndjson"]
        steps = db.execute(f"EXPLAIN QUERY PLAN {_DUE_ACTIONS}", (now,)).fetchall()
        assert not [step for *_, step in steps if step.startswith("SCAN _notices")]
        db.execute("DELETE FROM _notices")
        assert due_actions(db, now) == []


def test_one_that_waits_does_not_hold_up_others(bench: RuleBench) -> None:
    door = Door()
    door.error = ConnectionError("it answered 500")
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
    door.error = Undeliverable("it answered 410")
    queue = deliveries(bench, door)
    while queue.step():
        pass
    assert states(bench) == [("failed", 1, "it answered 410")] * 3
