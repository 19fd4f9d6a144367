"""A rebuild takes all that was acknowledged before it was asked for, and tells what it changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.run import asking
from tests.run.process import Running, make_project

pytestmark = pytest.mark.process

# Nothing is archived, cut or built by itself while the test runs.
SETTINGS = """
name = "rebuilt"
[speed]
group = "1 hour"
[archive]
interval = "1 hour"
[batch]
interval = "1 hour"
"""
DEFINITIONS = """
CREATE STREAM clicks (n BIGINT NOT NULL, page STRING NOT NULL, ts TIMESTAMP NOT NULL,
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE) WITH (key = 'page', id = 'event_id');
CREATE STREAM numbered AS SELECT page, n,
  row_number() OVER (PARTITION BY page ORDER BY ts) AS place FROM clicks;
CREATE VIEW places AS SELECT place, max(n) AS n FROM numbered GROUP BY place;
"""


@pytest.mark.timeout(300)
def test_a_rebuild_counts_a_late_event_that_was_acknowledged_before_it(tmp_path: Path) -> None:
    running = Running(make_project(tmp_path / "rebuilt", SETTINGS, DEFINITIONS))
    try:
        url = running.wait_for("serving")["url"]
        running.wait_for("ready")
        send(url, 1, "10:00:00")
        send(url, 2, "10:05:00")
        assert rebuild(url)["differences"] == 0
        assert places(url) == ([1, 2], False)
        send(url, 3, "09:00:00")
        assert rebuild(url)["differences"] == 3
        assert places(url) == ([3, 1, 2], False)
        running.stop()
    finally:
        running.kill()


def send(url: str, n: int, time: str) -> None:
    event = {"event_id": str(n), "n": n, "page": "a", "ts": f"2026-01-01T{time}Z"}
    assert asking.post(f"{url}/v1/streams/clicks/events", json=event).json()["accepted"] == 1


def rebuild(url: str) -> dict[str, Any]:
    found: dict[str, Any] = asking.post(f"{url}/v1/views/places/rebuild", timeout=120).json()
    return found


def places(url: str) -> tuple[list[int], bool]:
    """The numbers in the order of their places, and whether they are provisional."""
    answer = asking.get(f"{url}/v1/views/places").json()
    rows = sorted(answer["rows"], key=lambda row: row["place"])
    provisional = any(as_of.get("provisional", False) for as_of in answer["as_of"].values())
    return [row["n"] for row in rows], provisional
