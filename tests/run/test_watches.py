"""The watches of a project without Spark: looks in a thread, and destinations in a few."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace.compile.plan import Plan
from headrace.define.project import Project
from headrace.destination.file import FileDestination
from headrace.destination.protocol import DestinationContext, DestinationWriter, Message
from headrace.run import delivery_worker as module
from headrace.run.delivery_worker import DeliveryWorker
from headrace.run.evaluators import WatchEvaluator
from headrace.serving import watches
from headrace.serving.outbox import put_notification
from tests.run.waiting import wait
from tests.serving.bench import Click
from tests.serving.rule_bench import rule_plan, rule_project
from tests.serving.watch_bench import WatchBench, watch


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def refuse(*_: Any) -> Any:
    raise AssertionError("nothing goes into a stream here")


class Watching:
    """The watches of a project, and what delivers for them."""

    def __init__(self, bench: WatchBench, plan: Plan, project: Project) -> None:
        self.closed: list[set[str]] = []
        db = bench.store.db
        self.watches = WatchEvaluator(plan, db, lambda *_: None, self.closed.append)
        self.deliveries = DeliveryWorker(plan, project, db, refuse, lambda *_: None)

    def start(self) -> None:
        self.watches.start()
        self.deliveries.start()

    def stop(self) -> None:
        self.watches.stop()
        self.deliveries.stop()

    def halt(self) -> None:
        self.watches.stop()
        self.deliveries.halt()


def test_matches_and_the_end_are_delivered_and_the_ended_are_closed(tmp_path: Path) -> None:
    text = watch("two", 10, "AFTER 2 MATCHES") + watch(
        "other", 90, "AFTER 9 MATCHES", "NOTIFY FILE 'b.ndjson'"
    )
    bench = WatchBench(tmp_path / "serving.db", said=text)
    bench.build()
    out = tmp_path / "out"
    running = Watching(bench, bench.plan, rule_project(tmp_path, text))
    running.start()
    try:
        bench.send(*(Click("/a", f"u{n}", n, 95) for n in range(3)))
        wait(lambda: [line["kind"] for line in lines(out / "a.ndjson")][-1:] == ["ended"])
        wait(lambda: len(lines(out / "b.ndjson")) == 3)
        wait(lambda: bool(running.closed))
    finally:
        running.stop()
        bench.close()
    kinds = [(line["kind"], len(line["alerts"])) for line in lines(out / "a.ndjson")]
    assert kinds == [("raised", 1), ("raised", 1), ("ended", 0)]
    assert lines(out / "a.ndjson")[-1]["why"] == "it had 2 matches"
    assert running.closed[0] == {bench.plan.shapes[0].name}
    assert [*running.watches.problems, *running.deliveries.problems] == []


def test_the_last_notices_are_delivered_when_no_shape_is_left(tmp_path: Path) -> None:
    text = watch("one", 10, "AFTER 1 MATCH")
    bench = WatchBench(tmp_path / "serving.db", said=text)
    bench.build()
    bench.send(Click("/a", "ann", 1, 95))
    bench.look()
    none = msgspec.structs.replace(bench.plan, shapes=())
    running = Watching(bench, none, rule_project(tmp_path, ""))
    running.start()
    try:
        wait(lambda: len(lines(tmp_path / "out" / "a.ndjson")) == 2)
    finally:
        running.stop()
        bench.close()
    kinds = [line["kind"] for line in lines(tmp_path / "out" / "a.ndjson")]
    assert kinds == ["raised", "ended"]


@pytest.mark.parametrize("end", ["stop", "halt"])
def test_the_end_waits_for_a_slow_action_no_longer_than_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setattr(module, "STOP_S_MAX", 0.3)
    bench = WatchBench(tmp_path / "serving.db", said=watch("all", 10, "AFTER 999 MATCHES"))
    bench.build()
    bench.send(*(Click("/a", f"u{n}", n, 95) for n in range(100)))
    taken = list[int]()
    running = Watching(bench, bench.plan, rule_project(tmp_path, ""))

    class Slow(DestinationWriter):
        batch_max = 1

        def deliver(self, messages: Any) -> None:
            taken.append(len(messages))
            time.sleep(0.05)

    monkeypatch.setattr(FileDestination, "connect", lambda *_: Slow())
    running.start()
    wait(lambda: bool(taken))
    began = time.monotonic()
    getattr(running, end)()
    assert time.monotonic() - began < 3
    numbers = bench_numbers(bench)
    bench.close()
    assert 0 < numbers.waiting == 100 - len(taken)
    assert end == "stop" or len(taken) < 10


class Stuck(DestinationWriter):
    """A destination that hangs until it is let go."""

    batch_max = 1

    def __init__(self) -> None:
        self.calls, self.go = 0, threading.Event()

    def deliver(self, messages: Sequence[Message]) -> None:
        self.calls += 1
        self.go.wait(30)


def test_destinations_of_watches_that_hang_hold_up_neither_rules_nor_each_other_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [f"{name}.ndjson" for name in "abcdefghijklmnop"]
    text = "".join(
        watch(file[0], 10, "AFTER 999 MATCHES", f"NOTIFY FILE '{file}'") for file in files
    )
    rules = "CREATE RULE r AS SELECT page FROM clicks NOTIFY FILE 'rule.ndjson';"
    bench = WatchBench(tmp_path / "serving.db", said=text)
    bench.build()
    bench.send(Click("/a", "ann", 1, 95), Click("/a", "bob", 2, 95))
    bench.look()
    stuck, connect = {file: Stuck() for file in files}, FileDestination.connect
    with bench.store.write() as db:
        put_notification(db, ["file rule.ndjson"], "k", "r", "[]", b"{}", bench.clock())

    def connected(file: FileDestination, there: DestinationContext) -> DestinationWriter:
        return stuck.get(file.target) or connect(file, there)

    monkeypatch.setattr(FileDestination, "connect", connected)
    project = rule_project(tmp_path, rules)
    plan = msgspec.structs.replace(bench.plan, rules=rule_plan(rules, tmp_path).rules)
    running = DeliveryWorker(plan, project, bench.store.db, refuse, lambda *_: None)
    running.start()
    try:
        wait(lambda: sum(one.calls for one in stuck.values()) == module.SHARED_THREADS)
        wait(lambda: (tmp_path / "out" / "rule.ndjson").exists())
        waiting = [one for one in stuck.values() if not one.calls]
        next(one for one in stuck.values() if one.calls).go.set()
        wait(lambda: any(one.calls for one in waiting))
    finally:
        for one in stuck.values():
            one.go.set()
        running.stop()
        bench.close()


def test_another_worker_does_not_deliver_what_the_one_before_still_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STOP_S_MAX", 0.1)
    bench = WatchBench(tmp_path / "serving.db", said=watch("all", 10, "AFTER 999 MATCHES"))
    bench.build()
    bench.send(Click("/a", "ann", 1, 95))
    bench.look()
    stuck, project = Stuck(), rule_project(tmp_path, "")
    monkeypatch.setattr(FileDestination, "connect", lambda *_: stuck)
    given = bench.plan, project, bench.store.db, refuse, lambda *_: None
    first = DeliveryWorker(*given)
    first.start()
    wait(lambda: stuck.calls == 1)
    first.halt()
    (thread,) = first._busy.values()
    assert thread.daemon, "the process ends without it"
    second = DeliveryWorker(*given, before=first)
    second.drain()
    assert stuck.calls == 1
    stuck.go.set()
    wait(lambda: bench_numbers(bench).waiting == 0)
    second.drain()
    second.stop()
    bench.close()
    assert stuck.calls == 1


def bench_numbers(bench: WatchBench) -> watches.WatchCounts:
    with bench.store.read() as db:
        found = watches.count_watches(db)
    assert found is not None
    return found
