"""Makes the pipelines of a plan, and rebuilds a view of a stopped project with them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from headrace.api.service import RebuildResult
from headrace.batch.build import BuildResult
from headrace.compile.flow import flows_of
from headrace.compile.plan import Plan
from headrace.core.errors import NotFound
from headrace.core.report import Report
from headrace.core.watchdog import Watchdog
from headrace.define.layout import Layout
from headrace.define.project import Project
from headrace.master.archive import Archive
from headrace.run.archive_drafts import ArchiveDrafts
from headrace.run.compiling import compile_with, functions_of, processors_of, session
from headrace.run.pipeline import Pipeline
from headrace.run.project_service import ProjectService
from headrace.run.tables import Tables
from headrace.run.watch_constants import write_constants
from headrace.serving.database_store import DatabaseStore
from headrace.spark.relations import small_table

NO_PIPELINES: Mapping[str, Pipeline] = MappingProxyType({})


def pipelines_of(
    spark: Any,
    project: Project,
    plan: Plan,
    store: DatabaseStore,
    kept: Mapping[str, Pipeline] = NO_PIPELINES,
    watchdog: Watchdog | None = None,
    report: Report = lambda kind, fields: None,
    drafts: ArchiveDrafts | None = None,
) -> dict[str, Pipeline]:
    """A pipeline for each flow, unless `kept` has it; pipelines of the same stream share its
    archive.
    """
    functions, processors = functions_of(project), processors_of(project)
    write_constants(project.folder, store, plan, new_shapes(plan, kept))
    layout, drafts = Layout.of(project), drafts or ArchiveDrafts(project)
    shared = watchdog or Watchdog(), report
    archives = {
        s.name: Archive(
            spark, s, layout.log(s.name), layout.master(s.name), partial(drafts.of, s.name)
        )
        for s in plan.streams
    }
    archives |= {a.stream.name: a for pipeline in kept.values() for a in pipeline.archives}
    return {
        flow.name: kept.get(flow.name)
        or Pipeline(spark, project, plan, flow, archives, store, functions, processors, *shared)
        for flow in flows_of(plan)
    }


def new_shapes(plan: Plan, kept: Collection[str] = ()) -> set[str]:
    """The shapes of watches whose pipelines start with this plan and are not in `kept`."""
    flows = {view.name: view.stream for view in plan.views}
    return {shape.name for shape in plan.shapes if flows[shape.view] not in kept}


def rebuild_once(service: ProjectService, view: str) -> RebuildResult:
    """Recompute one view from the whole history, in a Spark session of its own."""
    with session(service.project, "run") as spark:
        plan = compile_with(spark, service.project)
        found = plan.view(view)
        if found is None or not found.stream:
            raise NotFound(f"there is no materialized view '{view}'")
        service.store.take_over()
        service.store.deploy(plan)
        pipelines = pipelines_of(spark, service.project, plan, service.store)
        folder = service.project.folder
        read = partial(small_table, spark, folder)
        Tables(plan.tables, folder, pipelines, service.store, read)
        return rebuild_result(found.name, pipelines[found.stream].rebuild(found.name))


def rebuild_result(view: str, promoted: BuildResult | None) -> RebuildResult:
    """The result of a rebuild of a view."""
    audit = next((a for a in promoted.audits if a.view == view), None) if promoted else None
    generation = promoted.generation if promoted else None
    if audit is None:
        return RebuildResult(view, generation, 0, None)
    return RebuildResult(view, generation, audit.compared, audit.changed)
