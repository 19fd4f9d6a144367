"""`headrace watch`: show, add and remove watches.

tests/cli/test_watches.py reads the pages.
"""

from __future__ import annotations

from pathlib import Path

from rich.table import Table
from rich.text import Text

from headrace.api.resources.watches import WatchesRequest, WatchRequest
from headrace.cli.folder import open_service
from headrace.cli.report import Report, dim, good, unwrapped
from headrace.cli.rules import read_text
from headrace.client.formats import timestamp
from headrace.client.table import table
from headrace.core.errors import BadRequest
from headrace.core.user import os_user
from headrace.serving.watches import ACTIVE, ENDED, WatchStatus

_HEADS = ("watch", "state", "severity", "matches", "until", "ended", "why")


def list_watches(folder: Path, state: str | None) -> Report:
    """All watches, or those in one state."""
    if state not in {None, ACTIVE, ENDED}:
        raise BadRequest(f"the state of a watch must be active or ended, not '{state}'")
    with open_service(folder) as service:
        found = service.ask(WatchesRequest(state)).watches
    return Report({"watches": found}, [watch_table(found) if found else Text("no watches")])


def watch_table(found: list[WatchStatus]) -> Table:
    return table(*_HEADS, rows=[_row(watch) for watch in found], right=("matches",))


def _row(watch: WatchStatus) -> list[str | Text]:
    state = good(watch.state) if watch.state == ACTIVE else Text(watch.state, style="yellow")
    most = f" of {watch.matches_max:,}" if watch.matches_max is not None else ""
    times = (watch.until, watch.ended_at)
    shown = [f"{timestamp(time)} UTC" if time else "" for time in times]
    return [watch.name, state, watch.severity, f"{watch.matches:,}{most}", *shown, watch.why or ""]


def show_watch(folder: Path, name: str) -> Report:
    with open_service(folder) as service:
        found = service.ask(WatchRequest(name))
    where = "added at run time" if found.kept else "in the project's files"
    by = f"{where}, by {found.added_by} at {timestamp(found.added_at)} UTC, shape {found.shape}"
    return Report(found, [watch_table([found]), "", unwrapped(found.text), dim(by)])


def add(folder: Path, file: Path) -> Report:
    """Add the watches of a file."""
    text = read_text(file)
    with open_service(folder) as service:
        found = service.watch_service.add(text, os_user())
    shown = [good(f"{watch.name}: {watch.state}") for watch in found]
    return Report({"watches": found}, shown)


def remove(folder: Path, name: str) -> Report:
    with open_service(folder) as service:
        found = service.watch_service.remove(name, os_user())
    return Report(found, [good(f"{found.name}: removed")])
