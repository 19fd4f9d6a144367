"""Law 3: an acknowledged event survives `kill -9` of the process at any named point, and is
counted once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.run import asking
from tests.run.process import CARRIED, JOINED, Producer, Running, make_project, wait_fresh

# In the order of an event's way. The number is how often the point is passed before the kill, so
# that the kill falls into the middle of the work and not on its first step.
FAILPOINTS = [
    "log.synced:5",
    "epoch.computed:2",
    "epoch.committing:2",
    "archive.written:2",
    "archive.committed:2",
    "generation.staged:2",
    "generation.promoting:2",
]

# Where rows and states of a carried view could part, if they were not written together.
CARRIED_FAILPOINTS = [
    "epoch.computed:3",
    "epoch.committing:3",
    "epoch.committed:3",
    "generation.staged:2",
    "generation.promoting:2",
    "generation.promoted:2",
]


@pytest.mark.timeout(600)
def test_acknowledged_events_survive_a_kill_at_each_point_and_count_once(tmp_path: Path) -> None:
    project = make_project(tmp_path / "kills")
    survive(project, Producer(), FAILPOINTS)


@pytest.mark.timeout(600)
def test_pairs_of_joined_streams_survive_a_kill_and_count_once(tmp_path: Path) -> None:
    project = make_project(tmp_path / "joined", definitions=JOINED)
    # Of three flows: a point is passed by each, so the kill falls on the joined one sometimes.
    points = ["epoch.committing:8", "generation.promoting:4"]
    survive(project, Producer("orders", "payments", rate=100), points)


@pytest.mark.timeout(600)
def test_the_state_of_carried_views_survives_a_kill_at_each_point(tmp_path: Path) -> None:
    project, producer = make_project(tmp_path / "carried", definitions=CARRIED), Producer()

    def matched(url: str) -> None:
        answer = asking.get(f"{url}/v1/views/matches").json()
        pairs = producer.pairs(answer["as_of"]["clicks"]["watermark"])
        assert sum(pairs.values()) > 50
        found = {
            row["page"]: (row["found"], row["newest"], row["events"]) for row in answer["rows"]
        }
        assert found == {page: (count, count, 2 * count) for page, count in pairs.items()}

    survive(project, producer, CARRIED_FAILPOINTS, matched)


def survive(
    project: Path,
    producer: Producer,
    failpoints: list[str],
    also: Callable[[str], None] = lambda url: None,
) -> None:
    """Kill the project at each point while events come, then compare its answer with the
    journal, and whatever else is to be.
    """
    for failpoint in failpoints:
        running = Running(project, failpoint=failpoint)
        url = running.wait_for("serving")["url"]
        stop = threading.Event()
        sender = threading.Thread(target=producer.send, args=(url, stop))
        sender.start()
        running.wait_killed()
        stop.set()
        sender.join()
    assert len(producer.acknowledged) > 100
    running = Running(project)
    try:
        url = running.wait_for("serving")["url"]
        producer.flush(url)
        running.wait_for("ready")
        status = wait_fresh(url, len(producer.acknowledged))
        rows = asking.get(f"{url}/v1/views/pages").json()["rows"]
        answer = {row["page"]: {"hits": row["hits"], "total": row["total"]} for row in rows}
        assert answer == producer.expected()
        balances = [stream["balance"] for stream in status["streams"]]
        assert {(balance["off"], balance["dead_letters"]) for balance in balances} == {(0, 0)}
        audits = asking.post(f"{url}/v1/audit", json={}, timeout=60).json()["audits"]
        assert {audit["differences"] for audit in audits} == {0}
        also(url)
    finally:
        running.kill()
