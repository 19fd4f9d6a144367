"""Law 3: an acknowledged event survives `kill -9` of the process at any named point, and is
counted once.

A process is killed at a drawn point; `make prove` kills at all of them, one after the other, and
also where streams are joined or silent. tests/laws/test_kills.py kills steps at every point.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from chance import PROVE, drawn

from headrace.serving.catalog import glance
from tests.run import asking
from tests.run.process import (
    ALL_KINDS,
    JOINED,
    SILENT,
    Producer,
    Running,
    make_project,
    wait_fresh,
)

pytestmark = pytest.mark.process

# In the order of an event's way. The number is how often the point is passed before the kill, so
# that the kill falls into the middle of the work and not on its first step.
FAILPOINTS = [
    "log.synced:5",
    "epoch.started:3",
    "epoch.computed:3",
    "epoch.committing:3",
    "epoch.committed:3",
    "archive.written:2",
    "archive.committing:2",
    "archive.committed:2",
    "archive.compacted:1",
    "generation.staged:2",
    "generation.promoting:2",
    "generation.promoted:2",
]


@pytest.mark.timeout(1500)
def test_acknowledged_events_survive_a_kill_at_each_point_and_count_once(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Partials, and states of carried views with their rows, which could part if they were not
    written together.
    """
    project, producer = make_project(tmp_path / "kills", definitions=ALL_KINDS), Producer()

    def answered(url: str) -> None:
        rows = asking.get(f"{url}/v1/views/places").json()["rows"]
        assert {row["page"]: {"hits": row["hits"], "total": row["total"]} for row in rows} == (
            producer.expected()
        )
        answer = asking.get(f"{url}/v1/views/matches").json()
        pairs = producer.pairs(answer["as_of"]["clicks"]["watermark"])
        # One kill is over before the watermark, a minute behind, has passed a pair.
        assert sum(pairs.values()) > 50 or not PROVE
        found = {
            row["page"]: (row["found"], row["newest"], row["events"]) for row in answer["rows"]
        }
        assert found == {page: (count, count, 2 * count) for page, count in pairs.items()}

    points = FAILPOINTS if PROVE else [drawn("kills").choice(FAILPOINTS)]
    record_property("kills", len(points))
    survive(project, producer, points, answered)


@pytest.mark.prove
@pytest.mark.timeout(600)
def test_pairs_of_joined_streams_survive_a_kill_and_count_once(tmp_path: Path) -> None:
    project = make_project(tmp_path / "joined", definitions=JOINED)
    # Of three flows: a point is passed by each, so the kill falls on the joined one sometimes.
    points = ["epoch.committing:8", "generation.promoting:4"]
    survive(project, Producer("orders", "payments", rate=100), points)


@pytest.mark.prove
@pytest.mark.timeout(600)
def test_what_silence_has_decided_survives_a_kill_and_is_decided_once(tmp_path: Path) -> None:
    """A partition falls silent, and what waits for it is found by an epoch without events: one
    that is killed in its transaction, one after it, and a process that finds it done.
    """
    project = make_project(tmp_path / "silent", definitions=SILENT)
    running = Running(project, failpoint="epoch.committing:3")
    url = running.wait_for("ready")["url"]
    _send(url, ("ann", 0))
    wait_fresh(url, 1)
    _send(url, ("bob", 10), ("bob", 11), ("bob", 30))
    running.wait_killed()
    before = glance(project / ".headrace" / "serving.db", "clicks")
    running = Running(project, failpoint="epoch.committed:1")
    running.wait_killed()
    after = glance(project / ".headrace" / "serving.db", "clicks")
    assert before.reached.position == after.reached.position
    assert before.reached.marks != after.reached.marks
    running = Running(project)
    try:
        url = running.wait_for("ready")["url"]
        decided = [{"page": "bob", "first": 10, "last": 11, "found": 1}], "2026-01-01T00:00:29Z"
        assert _matches(url) == decided
        asking.post(f"{url}/v1/views/matches/rebuild", timeout=200).raise_for_status()
        assert _matches(url) == decided, "batch finds the same"
    finally:
        running.kill()


@pytest.mark.timeout(300)
def test_a_run_ends_when_sparks_process_is_killed_and_says_so(tmp_path: Path) -> None:
    """As the kernel does where memory is short; whoever supervises the run starts another."""
    running = Running(make_project(tmp_path / "orphan"))
    try:
        url = running.wait_for("ready")["url"]
        producer, stop = Producer(), threading.Event()
        sender = threading.Thread(target=producer.send, args=(url, stop))
        sender.start()
        wait_fresh(url, 100)
        os.kill(asking.get(f"{url}/v1/system").json()["spark"]["jvm_pid"], signal.SIGKILL)
        assert running.process.wait(60) == 1
        stop.set()
        sender.join()
    finally:
        running.kill()
    said = running.reports[-1]
    assert (said["condition"], said["message"]) == (
        "EngineFailed", "Spark's process has ended, by signal 9",
    )  # fmt: skip


def _send(url: str, *events: tuple[str, int]) -> None:
    body = [{"page": page, "n": n, "ts": f"2026-01-01T00:00:{n:02}Z"} for page, n in events]
    asking.post(f"{url}/v1/streams/clicks/events", json=body).raise_for_status()


def _matches(url: str) -> tuple[list[dict[str, object]], str]:
    answer = asking.get(f"{url}/v1/views/matches", timeout=30).json()
    return answer["rows"], answer["as_of"]["clicks"]["watermark"]


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
    running = Running(project)
    try:
        url = running.wait_for("serving")["url"]
        producer.send_until(url, len(producer.acknowledged) + 200)
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
