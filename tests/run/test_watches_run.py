"""Watches are added while a project runs, with Spark; it is killed and started again."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from headrace.define.project import load_project
from headrace.run.offline import Offline
from tests.run import asking
from tests.run.process import Producer, Running, make_project, wait_fresh
from tests.run.waiting import wait

pytestmark = [pytest.mark.process, pytest.mark.prove]

NOTIFY = "NOTIFY FILE 'watched.ndjson'"
SAID = f"CREATE WATCH said AS SELECT n, page FROM clicks WHERE n >= 0 AFTER 2 MATCHES {NOTIFY};\n"


def watch(name: str, least: int, below: int, end: str) -> str:
    select = f"SELECT * FROM clicks WHERE n >= {least} AND n < {below}"
    return f"CREATE WATCH {name} AS {select} {end} {NOTIFY};"


def add(url: str, sql: str) -> Any:
    return asking.post(f"{url}/v1/watches", json={"sql": sql}, timeout=200)


def watches(url: str) -> dict[str, dict[str, Any]]:
    return {w["name"]: w for w in asking.get(f"{url}/v1/watches").json()["watches"]}


@pytest.mark.timeout(600)
def test_watches_are_added_matched_and_ended_while_a_project_runs(tmp_path: Path) -> None:
    project = make_project(tmp_path / "watched")
    (project / "watches.sql").write_text(SAID)
    running = Running(project)
    producer, stop = Producer(), threading.Event()
    sender = threading.Thread(target=producer.send, args=("", stop))
    try:
        url = running.wait_for("serving")["url"]
        running.wait_for("ready")
        sender = threading.Thread(target=producer.send, args=(url, stop))
        sender.start()
        wait(lambda: watches(url)["said"]["state"] == "ended")
        refused = add(url, "CREATE WATCH w AS SELECT pagee FROM clicks AFTER 1 MATCH")
        assert (refused.status_code, refused.json()["message"]) == (
            400, "there is no column 'pagee'",
        )  # fmt: skip
        first = add(url, watch("all", 0, 100_000, "UNTIL '2100-01-01'"))
        assert first.status_code == 200, first.text
        second = add(url, watch("three", 0, 100_000, "AFTER 3 MATCHES"))
        assert second.status_code == 200, second.text
        assert first.json()["watches"][0]["shape"] == second.json()["watches"][0]["shape"]
        running.process.kill()  # tests/serving/test_match_raiser.py does so at each failpoint
        running.wait_killed()
    finally:
        stop.set()
        sender.join()
        running.kill()
    running = Running(project)
    try:
        url = running.wait_for("serving")["url"]
        running.wait_for("ready")
        producer.flush(url)
        wait_fresh(url, len(producer.acknowledged))
        wait(lambda: watches(url)["three"]["state"] == "ended")
        assert watches(url)["all"]["state"] == "active"
        running.stop()
    finally:
        running.kill()
    _check(project, producer)


def _check(project: Path, producer: Producer) -> None:
    service = Offline(load_project(project))
    try:
        alerts = service.sql("SELECT rule, id, body FROM alerts").rows
        found = {watch.name: watch for watch in service.watch_service.watches()}
        audits = {audit.view: audit for audit in service.audit()}
    finally:
        service.close()
    assert [audit for audit in audits.values() if audit.differences] == []
    assert (found["said"].why, found["three"].why) == ("it had 2 matches", "it had 3 matches")
    said = {
        name: [json.loads(a["body"])["n"] for a in alerts if a["rule"] == name] for name in found
    }
    assert (len(said["said"]), len(said["three"])) == (2, 3)
    assert len(said["all"]) == len(set(said["all"])), "each event is one match"
    for page in range(7):
        sent = sorted(e["n"] for e in producer.acknowledged.values() if e["n"] % 7 == page)
        matched = sorted(n for n in said["all"] if n % 7 == page)
        assert matched == sent[len(sent) - len(matched) :], "all that came after the beginning"
        assert matched
    file = project / "out" / "watched.ndjson"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    told = {a["id"] for line in lines for a in line["alerts"]}
    assert told == {alert["id"] for alert in alerts}
    ended = {line["key"]: line["rule"] for line in lines if line["kind"] == "ended"}
    assert sorted(ended.values()) == ["said", "three"]
