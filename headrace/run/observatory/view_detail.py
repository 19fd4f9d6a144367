"""The details of one view. tests/run/test_observatory.py reads them."""

from __future__ import annotations

from headrace.api.resources.view_detail import Freshness, LateSummary, ViewDetail, ViewDetailRequest
from headrace.compile.explain import explain, unknown_view
from headrace.compile.flow import whole
from headrace.compile.lineage import lineage_of
from headrace.compile.plan import Plan, ViewPlan
from headrace.compile.view_subscription import streams_of
from headrace.core.errors import HeadraceError
from headrace.core.time import iso
from headrace.run.observatory.catalog import view_of
from headrace.run.observatory.observed_project import ObservedProject
from headrace.run.observatory.oldest_wait import oldest_wait_ms
from headrace.serving.history import newest_audit
from headrace.serving.late import LateWindow
from headrace.serving.store import AuditResult

LATE_WINDOWS_MAX = 1_000


def view_detail(service: ObservedProject, request: ViewDetailRequest) -> ViewDetail:
    """The definition, versions, freshness, audit and late events of a view."""
    plan = service.deployed()
    view = plan.view(request.view)
    if view is None or view not in plan.shown_views:
        raise unknown_view(request.view, [known.name for known in plan.shown_views])
    shown = view_of(service.project, plan, service.store, view)
    audit, audited_at = _audit(service, view)
    return ViewDetail(
        view.name,
        view.kind,
        shown.sql,
        view.origin,
        str(explain(plan, view.name)),
        shown.versions,
        shown.columns,
        [_freshness(service, plan, flow) for flow in streams_of(plan, view)],
        audit,
        audited_at,
        _late(service, view),
        shown.reads,
        lineage_of(service.project, plan).touched_by.get(view.name, []),
        service.runtime_info().rebuild(view.stream, view.name) if view.stream else None,
    )


def _freshness(service: ObservedProject, plan: Plan, flow: str) -> Freshness:
    state, now = service.store.stream(flow), service.store.clock()
    mark = state.reached.watermark_us
    readers = [service.log_reader(stream) for stream in state.plan.streams]
    end = whole(reader.end() for reader in readers).latest(state.position)
    parts = zip(readers, *map(state.plan.positions, (state.position, end)), strict=True)
    waits = [oldest_wait_ms(reader, position, last, now) for reader, position, last in parts]
    return Freshness(
        flow,
        list(state.position.offsets),
        list(state.boundary.offsets),
        list(end.offsets),
        state.generation,
        end - state.position,
        None if None in waits else max(wait or 0 for wait in waits),
        iso(mark) if mark is not None else None,
        (now - mark) // 1000 if mark is not None else None,
        iso(state.committed_at) if state.committed_at else None,
        iso(state.promoted_at) if state.promoted_at else None,
    )


def _audit(service: ObservedProject, view: ViewPlan) -> tuple[AuditResult | None, str | None]:
    """The audit of the view at the newest promotion, and its time."""
    with service.store.read() as db:
        found = newest_audit(db, view.stream, view.name)
    return (found[0], iso(found[1])) if found else (None, None)


def _late(service: ObservedProject, view: ViewPlan) -> LateSummary | None:
    if not view.has_lateness:
        return None
    try:
        found = service.query_service.reader.late(view.name, limit=LATE_WINDOWS_MAX + 1)
    except HeadraceError:  # it is being built for the first time
        return None
    return _summary(found.windows[:LATE_WINDOWS_MAX], len(found.windows) > LATE_WINDOWS_MAX)


def _summary(windows: list[LateWindow], truncated: bool) -> LateSummary:
    latest = [w.late_by_max_ms for w in windows if w.late_by_max_ms is not None]
    return LateSummary(
        len(windows),
        sum(window.on_time for window in windows),
        sum(window.late for window in windows),
        sum(window.absorbed for window in windows),
        sum(window.waiting for window in windows),
        max(latest, default=None),
        truncated,
    )
