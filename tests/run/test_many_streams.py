"""Thirty streams with sixty views come up on a small machine, each with its own answers."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.run.asking import get, post
from tests.run.process import Running, make_project
from tests.run.waiting import wait

STREAMS, EVENTS = 30, 50
SETTINGS = 'name = "many"\n[log]\npartitions = 1\n'
STREAM = """
CREATE STREAM s{n} (n BIGINT NOT NULL, page STRING NOT NULL) WITH (id = 'event_id');
CREATE VIEW pages{n} AS SELECT page, count(*) AS hits, sum(n) AS total FROM s{n} GROUP BY page;
CREATE VIEW total{n} AS SELECT count(*) AS hits FROM s{n};
"""


def events() -> str:
    made = [{"event_id": f"e{n}", "n": n, "page": f"/{n % 7}"} for n in range(EVENTS)]
    return "\n".join(map(json.dumps, made))


@pytest.mark.prove
@pytest.mark.process
@pytest.mark.timeout(900)  # it waits 600 s at most, also on a busy machine
def test_thirty_streams_start_and_count(tmp_path: Path) -> None:
    text = "".join(STREAM.format(n=n) for n in range(STREAMS))
    running = Running(make_project(tmp_path / "project", SETTINGS, text))
    try:
        url = str(running.wait_for("serving")["url"])
        for n in range(STREAMS):  # while Spark starts
            post(f"{url}/v1/streams/s{n}/events", content=events(), timeout=30).raise_for_status()
        running.wait_for("ready", 400)
        ends = time.monotonic() + 200
        for n in range(STREAMS):
            wait(lambda n=n: counted(url, n) == EVENTS, max(1.0, ends - time.monotonic()))  # type: ignore[misc]
        told = [report["message"] for report in running.reports if report["kind"] == "problem"]
        assert not [message for message in told if "Python worker" in message]
        running.stop()
    finally:
        running.kill()


def counted(url: str, stream: int) -> int:
    rows = get(f"{url}/v1/views/total{stream}", timeout=30).json()["rows"]
    return int(rows[0]["hits"]) if rows else 0
