"""A project with rules as a process, with Spark: live, killed, and started again."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.run.process import Producer, Running, make_project, wait_fresh

from .receiver import Receiver

pytestmark = pytest.mark.process

DEFINITIONS = """
CREATE STREAM clicks (n BIGINT NOT NULL, page STRING NOT NULL, ts TIMESTAMP NOT NULL,
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE) WITH (key = 'page', id = 'event_id');
CREATE VIEW total AS SELECT count(*) AS hits FROM clicks;
CREATE VIEW pages AS SELECT page, count(*) AS hits FROM clicks GROUP BY page;
CREATE STREAM round AS SELECT n, page, ts FROM clicks WHERE n % 10 = 0;
CREATE STREAM told (n BIGINT, alert_id STRING) WITH (id = 'event_id', partitions = '1');
CREATE RULE tens AS SELECT * FROM round SEVERITY 'high'
  NOTIFY '{url}', FILE 'alerts.ndjson', STREAM told WITH CORRECTIONS;
CREATE RULE many AS SELECT * FROM total WHERE hits >= 100 NOTIFY FILE 'alerts.ndjson';
"""
SETTINGS = """
name = "rules"
[speed]
trigger = "200 ms"
group = "500 ms"
[archive]
interval = "1 s"
[batch]
interval = "3 s"
[notify]
hosts = ["localhost"]
private = true
secret = "s3cret"
"""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.stop()


def ledger(project: Path, rule: str) -> list[dict[str, Any]]:
    db = sqlite3.connect(project / ".headrace" / "serving.db")
    db.row_factory = sqlite3.Row
    try:
        rows = db.execute("SELECT * FROM _alerts WHERE rule = ? ORDER BY number", (rule,))
        return [dict(row) for row in rows]
    finally:
        db.close()


@pytest.mark.timeout(600)
def test_every_match_is_one_alert_through_kills_and_generations(
    tmp_path: Path, receiver: Receiver
) -> None:
    project = make_project(tmp_path / "rules", SETTINGS, DEFINITIONS.replace("{url}", receiver.url))
    producer = Producer()
    killed = Running(project, failpoint="alerts.saved:3")
    try:
        url = killed.wait_for("serving")["url"]
        killed.wait_for("ready")
        producer.send(url, threading.Event())
        killed.wait_killed()
    finally:
        killed.kill()
    running = Running(project)
    try:
        url = running.wait_for("serving")["url"]
        running.wait_for("ready")
        producer.flush(url)
        wait_fresh(url, len(producer.acknowledged))
        running.stop()
    finally:
        running.kill()
    expected = {e["n"] for e in producer.acknowledged.values() if e["n"] % 10 == 0}
    alerts = ledger(project, "tens")
    assert {json.loads(alert["body"])["n"] for alert in alerts} == expected
    assert len(alerts) == len(expected)
    assert [a for a in alerts if a["missed"] or a["withdrawn_at"] or a["quiet"]] == []
    ids = {alert["id"] for alert in alerts}
    assert set(receiver.alerts()) == ids
    file = project / "out" / "alerts.ndjson"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    told = {a["id"] for line in lines for a in line["alerts"] if line["rule"] == "tens"}
    assert told == ids
    (many,) = ledger(project, "many")
    assert json.loads(many["body"])["hits"] >= 100
