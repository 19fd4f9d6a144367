"""The watches of a project without Spark: looks in a thread, and actions in a few."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace.run import watches as module
from headrace.run.watches import Watches
from headrace.serving import watches
from tests.run.waiting import wait
from tests.serving.bench import Click
from tests.serving.rule_bench import rule_project
from tests.serving.watch_bench import WatchBench, watch


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def refuse(*_: Any) -> Any:
    raise AssertionError("nothing goes into a stream here")


def test_matches_and_the_end_are_delivered_and_the_ended_are_closed(tmp_path: Path) -> None:
    text = watch("two", 10, "AFTER 2 MATCHES") + watch(
        "other", 90, "AFTER 9 MATCHES", "NOTIFY FILE 'b.ndjson'"
    )
    bench = WatchBench(tmp_path / "serving.db", said=text)
    bench.build()
    closed: list[set[str]] = []
    project, out = rule_project(tmp_path, text), tmp_path / "out"

    running = Watches(bench.plan, project, bench.store.db, refuse, lambda *_: None, closed.append)
    running.start()
    try:
        bench.send(*(Click("/a", f"u{n}", n, 95) for n in range(3)))
        wait(lambda: [line["kind"] for line in lines(out / "a.ndjson")][-1:] == ["ended"])
        wait(lambda: len(lines(out / "b.ndjson")) == 3)
        wait(lambda: bool(closed))
    finally:
        running.stop()
        bench.close()
    kinds = [(line["kind"], len(line["alerts"])) for line in lines(out / "a.ndjson")]
    assert kinds == [("raised", 1), ("raised", 1), ("ended", 0)]
    assert lines(out / "a.ndjson")[-1]["why"] == "it had 2 matches"
    assert closed[0] == {bench.plan.shapes[0].name}
    assert running.problems == {}


def test_the_last_notices_are_delivered_when_no_shape_is_left(tmp_path: Path) -> None:
    text = watch("one", 10, "AFTER 1 MATCH")
    bench = WatchBench(tmp_path / "serving.db", said=text)
    bench.build()
    bench.send(Click("/a", "ann", 1, 95))
    bench.look()
    project = rule_project(tmp_path, "")
    none = msgspec.structs.replace(bench.plan, shapes=())
    running = Watches(none, project, bench.store.db, refuse, lambda *_: None, lambda _: None)
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
    project, taken = rule_project(tmp_path, ""), list[int]()
    running = Watches(bench.plan, project, bench.store.db, refuse, lambda *_: None, lambda _: None)

    class Slow:
        at_once = 1

        def deliver(self, notices: Any) -> None:
            taken.append(len(notices))
            time.sleep(0.05)

    monkeypatch.setattr(module, "action_of", lambda *_: Slow())
    running.start()
    wait(lambda: bool(taken))
    began = time.monotonic()
    getattr(running, end)()
    assert time.monotonic() - began < 3
    numbers = bench_numbers(bench)
    bench.close()
    assert 0 < numbers.waiting == 100 - len(taken)
    assert end == "stop" or len(taken) < 10


def bench_numbers(bench: WatchBench) -> watches.WatchNumbers:
    with bench.store.read() as db:
        found = watches.numbers(db)
    assert found is not None
    return found
