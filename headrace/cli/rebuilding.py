"""A rebuild with a progress bar on stderr, with the estimated remaining time; only at a terminal
and without `--json`.

The rebuild itself runs in the main thread, so that Ctrl-C ends the command; another thread polls
the progress. A stopped project reports none, so its bar is indeterminate.
tests/cli/test_rebuilding.py reads the bar.
"""

from __future__ import annotations

import threading
from typing import Any

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from headrace.api.resources.view_detail import RebuildProgress, ViewDetailRequest
from headrace.api.service import RebuildResult, Service
from headrace.cli.report import console
from headrace.client.formats import plural
from headrace.core.errors import HeadraceError
from headrace.core.time import MILLISECOND, from_iso, now_us

_POLL_S, _LAST_S_MAX = 0.5, 5.0


def rebuild_with_progress(service: Service, view: str, *, quiet: bool) -> RebuildResult:
    """Rebuild a view."""
    screen = console(stderr=True)
    if quiet or not screen.is_terminal:
        return service.rebuild(view)
    with Progress(
        TextColumn("rebuilding {task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[state]}"),
        console=screen,
        transient=True,
    ) as bar:
        task, ended = bar.add_task(view, total=None, state=""), threading.Event()
        follower = threading.Thread(target=_follow, args=(service, bar, task, ended), daemon=True)
        follower.start()
        try:
            return service.rebuild(view)
        finally:
            ended.set()
            # Its last request ends before the service is closed.
            follower.join(_LAST_S_MAX)


def _follow(service: Service, bar: Progress, task: TaskID, ended: threading.Event) -> None:
    view = bar.tasks[task].description
    while not ended.wait(_POLL_S):
        try:
            found = service.ask(ViewDetailRequest(view)).rebuild
        except HeadraceError:
            continue  # the rebuild itself raises the error
        if found is not None:
            bar.update(task, **progress(found, now_us()))


def progress(found: RebuildProgress, now: int) -> dict[str, Any]:
    """The progress of a rebuild: `completed` of `total` milliseconds, if known, and as text.

    >>> running = RebuildProgress("running", None, "1970-01-01T00:00:00Z", 500, 9_000)
    >>> progress(running, 4_000_000)["state"]
    '500 events, about 5 s left'
    """
    if found.started_at is None:
        return {"total": None, "state": "waiting for the build before it"}
    events = plural(found.events, "event")
    if found.expected_ms is None:
        return {"total": None, "state": f"{events}, no earlier build to estimate the time from"}
    passed_ms = max(0, now - from_iso(found.started_at)) // MILLISECOND
    left_s = (found.expected_ms - passed_ms) / 1000
    time = f"about {left_s:.0f} s left" if left_s > 0 else "longer than the largest build so far"
    return {
        "total": found.expected_ms,
        "completed": min(passed_ms, found.expected_ms),
        "state": f"{events}, {time}",
    }
