"""Rows of a view: read them, and trace one to its events, without Spark and without writing.

tests/run/test_offline.py reads rows of a stopped project, tests/audit/test_why.py traces them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headrace.api.resources.rows import LateRequest, ReplayRequest, ViewRequest, WhyRequest
from headrace.audit.replay import replay_row
from headrace.audit.row_trace import RowTrace, open_trace, read_row
from headrace.audit.trace import Replay, Why
from headrace.audit.why import explain_row
from headrace.core import meters
from headrace.core.errors import NotFound, Unsupported
from headrace.log.opening import open_reader
from headrace.run.observatory.observed_project import ObservedProject
from headrace.serving.answer import Answer
from headrace.serving.late import LateAnswer


def view_rows(service: ObservedProject, request: ViewRequest) -> Answer:
    with meters.QUERY_SECONDS.labels(meters.STORE).time():
        found = service.query_service.reader.view(
            request.view,
            request.key_values,
            since=request.since,
            until=request.until,
            limit=request.limit,
            order=request.order,
        )
        return service.with_behind(found)


def late_windows(service: ObservedProject, request: LateRequest) -> LateAnswer:
    found = service.query_service.reader.late(
        request.view,
        request.key_values,
        since=request.since,
        until=request.until,
        limit=request.limit,
    )
    return service.with_behind(found)


def why(service: ObservedProject, request: WhyRequest) -> Why:
    with _traced(service, request) as traced:
        end = open_reader(service.layout.log(traced.stream.name)).end()
        position = traced.snapshot.state.position
        return explain_row(traced, end.latest(position) - position, request.limit)


def replay(service: ObservedProject, request: ReplayRequest) -> Replay:
    with _traced(service, request) as traced:
        return replay_row(traced, request.limit)


@contextmanager
def _traced(service: ObservedProject, request: WhyRequest | ReplayRequest) -> Iterator[RowTrace]:
    plan, project = service.deployed(), service.project
    view = plan.view(request.view)
    if view is None:
        known = ", ".join(view.name for view in plan.shown_views) or "none"
        raise NotFound(f"there is no view '{request.view}'", hint=f"available views: {known}.")
    if not view.kept:
        raise Unsupported(
            f"view '{view.name}' cannot be traced, because it reads other views",
            hint=f"trace a row of a view that it reads: {', '.join(view.reads)}.",
        )
    row = read_row(service.store, view.name, request.key_values, request.window)
    functions, seconds = service.functions(), project.settings.query.seconds_max
    with open_trace(row, plan, service.layout, project.folder, functions, seconds) as traced:
        yield traced
