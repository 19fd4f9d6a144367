"""A rebuild with a progress bar: at a terminal, on stderr, how far it is and about how much longer
it takes. A pipe gets nothing, and neither does `--json`.

The rebuild itself stays in the main thread, so that Ctrl-C ends the command; a thread beside it
asks the project how far it is. A stopped project does not tell, and its bar only moves.
tests/cli/test_rebuilding.py reads the bar.
"""

from __future__ import annotations

import threading
from typing import Any

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from headrace.api.observed.about import Rebuild
from headrace.api.service import Rebuilt, Service
from headrace.cli.report import console
from headrace.client.words import counted
from headrace.core.errors import HeadraceError
from headrace.core.time import MILLISECOND, from_iso, now_us

_POLL_S, _LAST_S_MAX = 0.5, 5.0


def rebuilt(service: Service, view: str, *, quiet: bool) -> Rebuilt:
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
            # Its last question is answered before the service is closed.
            follower.join(_LAST_S_MAX)


def _follow(service: Service, bar: Progress, task: TaskID, ended: threading.Event) -> None:
    view = bar.tasks[task].description
    while not ended.wait(_POLL_S):
        try:
            found = service.observatory.about(view).rebuild
        except HeadraceError:
            continue  # what is wrong is told by the rebuild itself
        if found is not None:
            bar.update(task, **progress(found, now_us()))


def progress(found: Rebuild, now: int) -> dict[str, Any]:
    """How far a rebuild is: `completed` of `total` milliseconds, if that is known, in words too.

    >>> progress(Rebuild("running", None, "1970-01-01T00:00:00Z", 500, 9_000), 4_000_000)["state"]
    '500 events, about 5 s left'
    """
    if found.started_at is None:
        return {"total": None, "state": "waiting for the build before it"}
    events = counted(found.events, "event")
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
