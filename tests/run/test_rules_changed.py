"""Rules are added, changed and removed while a project runs, with Spark."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from headrace.define.project import load_project
from headrace.run.offline import Offline
from tests.run import asking
from tests.run.process import Producer, Running, make_project, wait_fresh
from tests.run.waiting import wait

pytestmark = pytest.mark.process

RULE = "CREATE RULE tens AS SELECT n, page, ts FROM clicks WHERE n % 10 = 0"
NOTIFIED = f"{RULE} NOTIFY FILE 'alerts.ndjson'"


def add(url: str, sql: str) -> httpx.Response:
    return asking.post(f"{url}/v1/rules", json={"sql": sql}, timeout=200)


def first_epoch(url: str) -> dict[str, Any]:
    """The oldest epoch, with its phases while the thread that ran it runs."""
    epochs: list[dict[str, Any]] = asking.get(f"{url}/v1/epochs").json()["epochs"]
    return min(epochs, key=lambda epoch: epoch["number"])


def states(url: str) -> dict[str, int]:
    found = asking.get(f"{url}/v1/alerts", params={"limit": 10_000}).json()["alerts"]
    numbers: dict[str, int] = {}
    for alert in found:
        numbers[alert["state"]] = numbers.get(alert["state"], 0) + 1
    return numbers


@pytest.mark.timeout(600)
def test_rules_change_while_events_come_in_and_questions_are_answered(tmp_path: Path) -> None:
    project = make_project(tmp_path / "changed")
    running, producer, stop = Running(project), Producer(rate=200), threading.Event()
    try:
        url = running.wait_for("serving")["url"]
        running.wait_for("ready")
        sender = threading.Thread(target=producer.send, args=(url, stop))
        sender.start()
        wait_fresh(url, 100)
        refused = add(url, RULE.replace("page", "pagee"))
        assert (refused.status_code, refused.json()["message"]) == (
            400, "there is no column 'pagee'",
        )  # fmt: skip
        assert asking.get(f"{url}/v1/rules").json() == {"rules": []}
        first = first_epoch(url)
        assert first["phases"]
        (added,) = add(url, NOTIFIED).json()["rules"]
        assert (added["version"], added["changed_by"], added["kept"]) == (1, "local", True)
        wait_fresh(url, len(producer.acknowledged) + 100)
        wait(lambda: states(url).get("open", 0) > 3)
        changed = add(url, f"{NOTIFIED} WITH CORRECTIONS").json()["rules"][0]
        assert changed["version"] == 2
        assert first_epoch(url) == first, "speed was not stopped for the rules"
        stop.set()
        sender.join()
        wait_fresh(url, len(producer.acknowledged))
        status: dict[str, Any] = asking.get(f"{url}/v1/status", timeout=30).json()
        assert [view["name"] for view in status["views"]] == ["pages", "total", "alerts"]
        assert (status["state"], status["rules"][0]["name"]) == ("running", "tens")
        running.stop()
    finally:
        stop.set()
        running.kill()
    _check_ledger(project, producer)


def _check_ledger(project: Path, producer: Producer) -> None:
    service = Offline(load_project(project))
    try:
        alerts = service.sql("SELECT id, state, missed, body FROM alerts").rows
        history = service.rule_service.history("tens")
        assert [rule.name for rule in service.rule_service.rules()] == ["tens"]
        assert "tens" in service.project.rules, "it is a part of the project from now on"
        audits = {audit.view: audit for audit in service.audit()}
        assert [audit.view for audit in service.audit("tens")] == ["rule tens"]
    finally:
        service.close()
    assert audits["rule tens"].compared == len(alerts), audits
    assert [audit for audit in audits.values() if audit.differences] == []
    expected = {e["n"] for e in producer.acknowledged.values() if e["n"] % 10 == 0}
    assert {json.loads(alert["body"])["n"] for alert in alerts} == expected
    assert len(alerts) == len(expected)
    assert not any(alert["missed"] for alert in alerts)
    file = project / "out" / "alerts.ndjson"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    told = {line["key"] for line in lines}
    assert told == {alert["id"] for alert in alerts if alert["state"] == "open"}
    assert any(alert["state"] == "backfilled" for alert in alerts)
    assert [version.version for version in history] == [2, 1]
