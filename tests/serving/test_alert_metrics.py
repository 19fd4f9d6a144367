"""What was raised and delivered is counted for ever; what waits is told with its age."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.core.time import DAY, MINUTE
from headrace.serving.alert_metrics import AlertMetrics, DeliveryMetrics, read_alert_metrics
from headrace.serving.outbox import Queue
from headrace.serving.retention import AlertRetention
from tests.serving.bench import Bench, Click
from tests.serving.rule_bench import SLOW, RuleBench
from tests.serving.watch_bench import WatchBench, watch

from .marks import on_every_database

pytestmark = on_every_database


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[RuleBench]:
    made = RuleBench(tmp_path / "serving.db", rules=f"{SLOW} NOTIFY FILE 'a', FILE 'b'")
    made.build()
    made.look()
    yield made
    made.close()


def counted(bench: Bench) -> AlertMetrics:
    with bench.store.read() as db:
        return read_alert_metrics(db, bench.clock())


def raise_one(bench: RuleBench) -> None:
    bench.send(Click("/a", "ann", 5, 99))
    bench.look()
    bench.build()
    bench.look()


def test_notifications_are_counted_by_kind_with_the_age_of_the_oldest(bench: RuleBench) -> None:
    assert counted(bench) == AlertMetrics({}, {})
    raise_one(bench)
    bench.clock.now_us += MINUTE
    raise_one(bench)
    a, b = (Queue(bench.store.db, d.name) for d in bench.plan.rules[0].destinations)
    (old, new), (lost, _) = a.due(bench.clock(), 9), b.due(bench.clock(), 9)
    assert counted(bench).sent == {"file": DeliveryMetrics(0, 0, 4, 60.0)}
    a.delivered([old], bench.clock())
    b.failed([lost], "it is dead", bench.clock())
    assert counted(bench).sent == {"file": DeliveryMetrics(1, 1, 2, 0.0)}
    a.retry_later([new], "it is slow", bench.clock() + DAY)
    bench.clock.now_us += MINUTE
    assert counted(bench).sent == {"file": DeliveryMetrics(1, 1, 2, 60.0)}, "also while it pauses"


def test_what_was_raised_and_delivered_counts_after_it_was_removed(bench: RuleBench) -> None:
    for severity in ("low", "high", "high"):
        bench.redeploy(f"{SLOW} SEVERITY '{severity}' NOTIFY FILE 'a'")
        raise_one(bench)
        queue = Queue(bench.store.db, bench.plan.rules[0].destinations[0].name)
        queue.delivered(queue.due(bench.clock(), 9), bench.clock())
    before = counted(bench)
    assert before.raised == {("slow", "low"): 1, ("slow", "high"): 2}
    bench.clock.now_us += 2 * DAY
    assert AlertRetention(bench.store.db, DAY, bench.clock).remove_old() == 3
    assert bench.alerts() == []
    assert counted(bench) == before
    raise_one(bench)
    assert counted(bench).raised == {("slow", "low"): 1, ("slow", "high"): 3}


def test_watches_are_counted_together(tmp_path: Path) -> None:
    said = watch("all", 9, "AFTER 99 MATCHES") + watch("one", 9, "AFTER 1 MATCH")
    bench = WatchBench(tmp_path / "serving.db", said=said)
    bench.build()
    bench.send(Click("/a", "ann", 5, 99), Click("/a", "bob", 6, 98))
    bench.look()
    found = counted(bench)
    bench.close()
    assert (found.raised, found.watches, found.matches) == ({}, 1, 3)
    assert found.sent["file"].waiting == 4
