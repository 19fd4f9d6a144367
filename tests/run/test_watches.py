"""The watches of a project without Spark: looks in a thread, and actions in a few."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from headrace.run.watches import Watches
from tests.run.waiting import wait
from tests.serving.bench import Click
from tests.serving.rule_bench import rule_project
from tests.serving.watch_bench import WatchBench, watch


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_matches_and_the_end_are_delivered_and_the_ended_are_closed(tmp_path: Path) -> None:
    text = watch("two", 10, "AFTER 2 MATCHES") + watch(
        "other", 90, "AFTER 9 MATCHES", "NOTIFY FILE 'b.ndjson'"
    )
    bench = WatchBench(tmp_path / "serving.db", said=text)
    bench.build()
    closed: list[set[str]] = []
    project, out = rule_project(tmp_path, text), tmp_path / "out"

    def submit(*_: Any) -> Any:
        raise AssertionError("nothing goes into a stream here")

    running = Watches(bench.plan, project, bench.store.db, submit, lambda *_: None, closed.append)
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
