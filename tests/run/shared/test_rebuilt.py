"""A rebuild takes all that was acknowledged before it was asked for, and tells what it changes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.run import asking

pytestmark = pytest.mark.process


@pytest.mark.timeout(300)
def test_a_rebuild_counts_a_late_event_that_was_acknowledged_before_it(shared_url: str) -> None:
    url = shared_url
    send(url, 1, "10:00:00")
    send(url, 2, "10:05:00")
    assert rebuild(url)["differences"] == 0
    assert places(url) == ([1, 2], False)
    send(url, 3, "09:00:00")
    assert rebuild(url)["differences"] == 3
    assert places(url) == ([3, 1, 2], False)


def send(url: str, n: int, time: str) -> None:
    event = {"event_id": str(n), "n": n, "page": "a", "ts": f"2026-01-01T{time}Z"}
    assert asking.post(f"{url}/v1/streams/laps/events", json=event).json()["accepted"] == 1


def rebuild(url: str) -> dict[str, Any]:
    found: dict[str, Any] = asking.post(f"{url}/v1/views/places/rebuild", timeout=120).json()
    return found


def places(url: str) -> tuple[list[int], bool]:
    """The numbers in the order of their places, and whether they are provisional."""
    answer = asking.get(f"{url}/v1/views/places").json()
    rows = sorted(answer["rows"], key=lambda row: row["place"])
    provisional = any(as_of.get("provisional", False) for as_of in answer["as_of"].values())
    return [row["n"] for row in rows], provisional
