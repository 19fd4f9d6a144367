"""The rules of a project without Spark: looks after epochs, and destinations in their threads."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from headrace.core.errors import BadSetting, DiskFull
from headrace.core.problems import Problem
from headrace.core.report import Report
from headrace.core.time import MILLISECOND, SECOND
from headrace.ingest.intake import Receipt
from headrace.run import delivery_worker as module
from headrace.run.delivery_worker import DeliveryWorker
from headrace.run.evaluators import RuleEvaluator
from headrace.serving.alerts import Alert, count_alerts, read_alert
from headrace.serving.outbox import Queue
from tests.run.waiting import wait
from tests.serving.bench import Click
from tests.serving.rule_bench import SLOW, TOLD, RuleBench, rule_project

from .receiver import Receiver

NOTIFY = {
    "hosts": ("localhost",), "private": True, "secret": "s", "pause_us": 20 * MILLISECOND,
    "pause_max_us": 50 * MILLISECOND, "answer_us": 200 * MILLISECOND,
}  # fmt: skip


class Notifying:
    """The rules of a project, and what delivers for them."""

    def __init__(
        self, bench: RuleBench, folder: Path, rules: str, submit: Any, **said: Any
    ) -> None:
        report: Report = lambda *_: None  # noqa: E731
        project, db = rule_project(folder, rules, **said), bench.store.db
        self.rules = RuleEvaluator(bench.plan, db, report)
        self.deliveries = DeliveryWorker(bench.plan, project, db, submit, report)

    @property
    def problems(self) -> list[Problem]:
        return [*self.rules.problems, *self.deliveries.problems]

    def start(self) -> None:
        self.rules.start()
        self.deliveries.start()

    def drain(self) -> None:
        self.rules.evaluate()
        self.deliveries.drain()

    def stop(self) -> None:
        self.rules.stop()
        self.deliveries.stop()


Run = Callable[..., tuple[RuleBench, Notifying]]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.stop()


def refuse(stream: str, events: Any) -> Future[Receipt]:
    raise AssertionError("nothing goes into a stream here")


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Run]:
    made: list[tuple[RuleBench, Notifying]] = []

    def make(rules: str, submit: Any = refuse, **notify: Any) -> tuple[RuleBench, Notifying]:
        said = {**NOTIFY, **notify}
        bench = RuleBench(tmp_path / "serving.db", rules=rules, notify=said)
        bench.build()
        made.append((bench, Notifying(bench, tmp_path, rules, submit, **said)))
        return made[-1]

    yield make
    for bench, alerts in made:
        alerts.stop()
        bench.close()


def clicks(count: int, first: int = 0) -> list[Click]:
    return [Click("/a", f"u{n}", n, 99) for n in range(first, first + count)]


def ids(folder: Path) -> list[str]:
    lines = (folder / "out" / "alerts.ndjson").read_text().splitlines()
    return [entry["id"] for line in lines for entry in json.loads(line)["alerts"]]


def count(bench: RuleBench) -> Any:
    with bench.store.read() as db:
        return count_alerts(db, "slow")


def shown(bench: RuleBench) -> Alert:
    """The oldest alert, by the beginning of its id."""
    id = bench.alerts()[0].id[:8]
    with bench.store.read() as db:
        return read_alert(db, id)


def test_a_rule_that_is_held_is_looked_for_when_it_is_released(running: Run) -> None:
    bench, alerts = running(f"{SLOW} NOTIFY FILE 'alerts.ndjson'")
    alerts.rules.start(hold={"slow"})
    bench.send(Click("/a", "ann", 5, 99))
    alerts.rules.evaluate()
    assert bench.alerts() == []
    alerts.rules.release()
    wait(lambda: len(bench.alerts()) == 1)


def test_alerts_reach_the_file_and_the_stream(running: Run, tmp_path: Path) -> None:
    sent: list[dict[str, Any]] = []

    def submit(stream: str, events: Any) -> Future[Receipt]:
        sent.extend({"to": stream, **json.loads(event)} for event in events)
        done: Future[Receipt] = Future()
        done.set_result(Receipt(len(events), 0, 0, ()))
        return done

    bench, alerts = running(
        f"{TOLD}{SLOW} SEVERITY 'high' NOTIFY STREAM told, FILE 'alerts.ndjson'", submit
    )
    bench.send(Click("/a", "ann", 5, 99))
    alerts.drain()
    (found,) = bench.alerts()
    line = json.loads((tmp_path / "out" / "alerts.ndjson").read_text())
    assert line["key"] == found.id == line["alerts"][0]["id"]
    assert (line["kind"], line["rule"], line["severity"]) == ("raised", "slow", "high")
    assert line["alerts"][0]["body"] == found.body
    assert sent == [
        {
            "to": "told", "event_id": found.id, "alert_id": found.id, "alert_rule": "slow",
            "alert_severity": "high", "alert_kind": "raised", "alert_raised_by": "speed",
            "alert_event_time": "2026-01-01T00:00:05Z", "alert_raised_at": found.raised_at,
            **found.body,
        }
    ]  # fmt: skip
    told = [(d.action, d.state, d.attempts) for d in shown(bench).deliveries]
    assert told == [
        ("stream told", "delivered", 1), ("file alerts.ndjson", "delivered", 1),
    ]  # fmt: skip


@pytest.mark.parametrize("mood", ["500", "hang", "close", "gone"])
def test_dead_webhook_holds_up_nothing_and_gets_all_in_the_end(
    mood: str, running: Run, receiver: Receiver, tmp_path: Path
) -> None:
    bench, alerts = running(
        f"{SLOW} NOTIFY '{receiver.url}', FILE 'alerts.ndjson'", attempts_max=10_000
    )
    if mood == "gone":
        receiver.stop()
    else:
        receiver.mood = mood
    alerts.start()
    bench.send(*clicks(20))
    wait(lambda: (tmp_path / "out" / "alerts.ndjson").exists() and len(ids(tmp_path)) == 20)
    assert bench.rows("hits")[0]["n"] == 20, "views are answered"
    bench.send(*clicks(20, 20))
    wait(lambda: len(ids(tmp_path)) == 40)
    wait(lambda: bool(alerts.problems))
    assert receiver.keys() == []
    if mood == "gone":
        receiver.start()
    receiver.mood = "200"
    wait(lambda: len(set(receiver.keys())) == 40)
    wait(lambda: count(bench).waiting == 0 and not alerts.problems)
    assert sorted(set(receiver.alerts())) == sorted(set(ids(tmp_path)))


def test_notification_that_is_refused_is_kept_with_the_reason(
    running: Run, receiver: Receiver
) -> None:
    bench, alerts = running(f"{SLOW} NOTIFY '{receiver.url}'")
    receiver.mood = "410"
    bench.send(*clicks(1))
    alerts.drain()
    (delivery,) = shown(bench).deliveries
    assert (delivery.state, delivery.reason) == ("failed", "the response status is 410")
    assert count(bench).failed == 1


def slow_webhook(running: Run, monkeypatch: pytest.MonkeyPatch) -> tuple[RuleBench, Notifying]:
    """A hundred notices, of which each takes 50 ms."""
    bench, alerts = running(f"{SLOW} NOTIFY FILE 'alerts.ndjson'")
    bench.send(*clicks(100))
    (delivery,) = alerts.deliveries.queues.values()
    monkeypatch.setattr(delivery.writer, "batch_max", 1, raising=False)
    monkeypatch.setattr(delivery.writer, "deliver", lambda due: time.sleep(0.05))
    return bench, alerts


def test_the_end_waits_for_a_slow_action_no_longer_than_it_says(
    running: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STOP_S_MAX", 0.3)
    bench, alerts = slow_webhook(running, monkeypatch)
    began = time.monotonic()
    alerts.stop()
    assert time.monotonic() - began < 3
    assert 0 < count(bench).waiting < 100


def test_who_is_continued_by_others_delivers_nothing_at_its_end(
    running: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, alerts = slow_webhook(running, monkeypatch)
    alerts.rules.stop()
    alerts.deliveries.halt()
    assert (count(bench).alerts, count(bench).waiting) == (100, 100)


def test_a_store_that_cannot_be_written_does_not_keep_the_rest_from_stopping(
    running: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, alerts = running(f"{SLOW} NOTIFY FILE 'alerts.ndjson'")
    bench.send(*clicks(1))

    def full(*_: object) -> None:
        raise DiskFull("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Queue, "delivered", full)
        alerts.stop()
    said = "file alerts.ndjson was not notified: the disk is full"
    (problem,) = alerts.problems
    assert (problem.kind, problem.name) == ("action", "file alerts.ndjson")
    assert problem.message == said
    assert count(bench).waiting == 1


def test_attempts_have_an_end(running: Run, receiver: Receiver) -> None:
    bench, alerts = running(f"{SLOW} NOTIFY '{receiver.url}'", attempts_max=3, pause_us=1)
    receiver.mood = "500"
    bench.send(*clicks(1))
    alerts.start()
    wait(lambda: count(bench).failed == 1)
    assert len(receiver.requests) == 3


def test_queue_of_a_dead_webhook_takes_no_memory(running: Run, receiver: Receiver) -> None:
    bench, alerts = running(f"{SLOW} NOTIFY '{receiver.url}'", pause_us=60 * SECOND)
    receiver.mood = "500"
    bench.send(*clicks(1))
    alerts.drain()
    tracemalloc.start()
    try:
        before = None
        for round in range(5):
            bench.send(*clicks(1_000, 1 + 1_000 * round))
            alerts.drain()
            size, _ = tracemalloc.get_traced_memory()
            before = before or size
        grown = size - before
    finally:
        tracemalloc.stop()
    assert count(bench).waiting == 5_001
    assert grown < 4 << 20, f"{grown:,} bytes more for 4,000 notices that wait"


def test_rule_that_fails_says_so_and_the_others_go_on(running: Run, tmp_path: Path) -> None:
    other = f"CREATE RULE other AS {SLOW.partition(' AS ')[2]}"
    bench, alerts = running(f"{SLOW}; {other} NOTIFY FILE 'alerts.ndjson'")
    alerts.rules.evaluate()
    with bench.store.write() as db:
        db.execute("UPDATE _looks SET since = 'x' WHERE rule = 'slow'")
    bench.send(*clicks(2))
    alerts.drain()
    assert [(one.kind, one.name) for one in alerts.problems] == [("rule", "slow")]
    assert len(ids(tmp_path)) == 2


def test_webhook_without_a_secret_is_refused(running: Run, receiver: Receiver) -> None:
    with pytest.raises(BadSetting) as refused:
        running(f"{SLOW} NOTIFY '{receiver.url}'", secret="")
    assert refused.value.message == (
        f"a rule notifies '{receiver.url}', which requires a secret for its signature"
    )


def test_what_waits_for_an_action_that_is_gone_has_failed(
    running: Run, receiver: Receiver, tmp_path: Path
) -> None:
    bench, alerts = running(f"{SLOW} NOTIFY '{receiver.url}'", pause_us=60 * SECOND)
    receiver.mood = "500"
    bench.send(*clicks(1))
    alerts.drain()
    rules = f"{SLOW} NOTIFY FILE 'alerts.ndjson'"
    bench.redeploy(rules)
    after = RuleEvaluator(bench.plan, bench.store.db, lambda *_: None)
    after.start(hold=())
    assert count(bench).failed == 0, "before its views are built, the other plan may be taken back"
    after.release()
    after.stop()
    (delivery,) = shown(bench).deliveries
    assert (delivery.state, delivery.reason) == (
        "failed",
        "the rule no longer names this destination",
    )
