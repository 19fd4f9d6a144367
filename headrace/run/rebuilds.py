"""How far the rebuild of a view is: asked for, begun, how much it reads, and how long that takes.
tests/run/test_rebuilds.py reads each state.
"""

from __future__ import annotations

from headrace.api.resources.view_detail import RebuildProgress
from headrace.core.time import iso
from headrace.run.pace import Pace
from headrace.run.schedule import Wish


def rebuild_of(wish: Wish | None, events: int, pace: Pace) -> RebuildProgress:
    """The rebuild of a view with so many events; `wish` is the one that was asked for."""
    seconds = pace.seconds(events)
    expected_ms = None if seconds is None else round(seconds * 1000)
    if wish is None:
        return RebuildProgress("idle", None, None, events, expected_ms)
    asked_at, started_us = iso(wish.asked_at_us), wish.started_at_us
    if started_us is None:
        return RebuildProgress("waiting", asked_at, None, events, expected_ms)
    return RebuildProgress("running", asked_at, iso(started_us), events, expected_ms)
