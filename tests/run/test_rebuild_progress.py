"""What is said of a rebuild, in each of its states."""

from __future__ import annotations

from headrace.api.resources.view_detail import RebuildProgress
from headrace.core.position import Position
from headrace.core.time import SECOND, iso
from headrace.run.build_time import BuildTimeEstimate
from headrace.run.rebuild_progress import rebuild_progress
from headrace.run.schedule import RebuildRequest


def build_time() -> BuildTimeEstimate:
    made = BuildTimeEstimate()
    made.add(1_000, 4.0)
    return made


def test_a_view_that_nobody_rebuilds_says_what_it_would_take() -> None:
    assert rebuild_progress(None, 2_000, build_time()) == RebuildProgress(
        "idle", None, None, 2_000, 8_000
    )


def test_without_a_build_before_it_is_not_known_how_long_it_takes() -> None:
    assert rebuild_progress(None, 2_000, BuildTimeEstimate()).expected_ms is None


def test_a_rebuild_waits_and_then_runs() -> None:
    request = RebuildRequest("clicks", "pages", Position((7,)), SECOND)
    said = rebuild_progress(request, 500, build_time())
    assert said == RebuildProgress("waiting", iso(SECOND), None, 500, 4_000)
    request.started_at_us = 3 * SECOND
    said = rebuild_progress(request, 500, build_time())
    assert said == RebuildProgress("running", iso(SECOND), iso(3 * SECOND), 500, 4_000)
