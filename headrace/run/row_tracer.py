"""`why` and `replay` of a running or stopped project: read a row, and trace it to its events.

Nothing is written, and Spark is not used. tests/audit/test_why.py traces rows of a stopped project.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headrace.audit.replay import replay_row
from headrace.audit.row_trace import RowTrace, open_trace, read_row
from headrace.audit.trace import Replay, Why
from headrace.audit.why import explain_row
from headrace.core.errors import NotFound, Unsupported
from headrace.define.layout import Layout
from headrace.define.project import Project
from headrace.log.opening import open_reader
from headrace.run.compiling import functions_of
from headrace.serving.catalog import required_plan
from headrace.serving.conditions import Keys
from headrace.serving.sqlite_store import SqliteStore


class RowTracer:
    """Traces the rows of views to their events."""

    def __init__(self, project: Project, store: SqliteStore) -> None:
        self.project, self.store, self.layout = project, store, Layout.of(project)

    def why(self, view: str, keys: Keys, window: str | None, limit: int) -> Why:
        with self._traced(view, keys, window) as traced:
            end = open_reader(self.layout.log(traced.stream.name)).end()
            position = traced.snapshot.state.position
            return explain_row(traced, end.latest(position) - position, limit)

    def replay(self, view: str, keys: Keys, window: str | None, limit: int) -> Replay:
        with self._traced(view, keys, window) as traced:
            return replay_row(traced, limit)

    @contextmanager
    def _traced(self, name: str, keys: Keys, window: str | None) -> Iterator[RowTrace]:
        plan = required_plan(self.store.deployed())
        view = plan.view(name)
        if view is None:
            known = ", ".join(view.name for view in plan.shown_views) or "none"
            raise NotFound(f"there is no view '{name}'", hint=f"there are: {known}.")
        if not view.kept:
            raise Unsupported(
                f"view '{view.name}' cannot be traced, because it reads other views",
                hint=f"trace a row of: {', '.join(view.reads)}.",
            )
        row = read_row(self.store, view.name, keys, window)
        functions, seconds = functions_of(self.project), self.project.settings.query.seconds_max
        folder = self.project.folder
        with open_trace(row, plan, self.layout, folder, functions, seconds) as traced:
            yield traced
