"""The progress of the rebuild of a view: its state, its events, and its expected duration.
tests/run/test_rebuild_progress.py reads each state.
"""

from __future__ import annotations

from headrace.api.resources.view_detail import RebuildProgress
from headrace.core.time import iso
from headrace.run.build_time import BuildTimeEstimate
from headrace.run.schedule import RebuildRequest


def rebuild_progress(
    request: RebuildRequest | None, events: int, build_time: BuildTimeEstimate
) -> RebuildProgress:
    """The rebuild of a view with this many events; `request` is None if nobody requested one."""
    seconds = build_time.seconds(events)
    expected_ms = None if seconds is None else round(seconds * 1000)
    if request is None:
        return RebuildProgress("idle", None, None, events, expected_ms)
    requested_at, started_us = iso(request.requested_at_us), request.started_at_us
    if started_us is None:
        return RebuildProgress("waiting", requested_at, None, events, expected_ms)
    return RebuildProgress("running", requested_at, iso(started_us), events, expected_ms)
