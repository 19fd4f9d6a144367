"""`headrace watch`: what is watched, what has ended and why.

tests/cli/test_watches.py reads the pages.
"""

from __future__ import annotations

from pathlib import Path

from rich.table import Table
from rich.text import Text

from headrace.cli.folder import asked
from headrace.cli.report import Report, dim, good, whole
from headrace.cli.rules import read_text
from headrace.client.table import table
from headrace.client.words import moment
from headrace.core.errors import BadRequest
from headrace.core.user import os_user
from headrace.serving.watches import ACTIVE, ENDED, WatchStatus

_HEADS = ("watch", "state", "severity", "matches", "until", "ended", "why")


def listed(folder: Path, state: str | None) -> Report:
    """All watches, or those in one state."""
    if state not in {None, ACTIVE, ENDED}:
        raise BadRequest(f"a watch is active or ended, not '{state}'")
    with asked(folder) as service:
        found = service.watchbook.watches(state)
    return Report({"watches": found}, [watch_table(found) if found else Text("no watches")])


def watch_table(found: list[WatchStatus]) -> Table:
    return table(*_HEADS, rows=[_row(watch) for watch in found], right=("matches",))


def _row(watch: WatchStatus) -> list[str | Text]:
    state = good(watch.state) if watch.state == ACTIVE else Text(watch.state, style="yellow")
    most = f" of {watch.matches_max:,}" if watch.matches_max is not None else ""
    times = (watch.until, watch.ended_at)
    said = [f"{moment(time)} UTC" if time else "" for time in times]
    return [watch.name, state, watch.severity, f"{watch.matches:,}{most}", *said, watch.why or ""]


def shown(folder: Path, name: str) -> Report:
    with asked(folder) as service:
        found = service.watchbook.watch(name)
    where = "added while it ran" if found.kept else "in the project's files"
    by = f"{where}, by {found.added_by} at {moment(found.added_at)} UTC, shape {found.shape}"
    return Report(found, [watch_table([found]), "", whole(found.text), dim(by)])


def add(folder: Path, file: Path) -> Report:
    """Add the watches of a file."""
    text = read_text(file)
    with asked(folder) as service:
        found = service.watchbook.add(text, os_user())
    said = [good(f"{watch.name}: {watch.state}") for watch in found]
    return Report({"watches": found}, said)


def remove(folder: Path, name: str) -> Report:
    with asked(folder) as service:
        found = service.watchbook.remove(name, os_user())
    return Report(found, [good(f"{found.name}: removed")])
