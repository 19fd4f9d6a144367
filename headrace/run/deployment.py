"""The components that run one plan: a pipeline for each flow, the schedule of archive steps and
builds, sinks, rule and watch evaluators, and the delivery worker.

A running project has one deployment at a time. A change of rules replaces it with another one,
which reuses what does not change: the schedule, the sinks, and the pipelines with their running
queries, which read new views from the store. tests/run/test_rules_changed.py changes it while
events come in.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from headrace.api.resources.view_detail import RebuildProgress
from headrace.compile.flow import flows_of
from headrace.compile.plan import Plan
from headrace.core.errors import Conflict, NotReady
from headrace.core.position import Position, PositionRange
from headrace.core.problems import Problem, deduplicated
from headrace.core.report import Report
from headrace.core.watchdog import Watchdog
from headrace.define.project import Project
from headrace.ingest.intake import Receipt
from headrace.log.protocol import LogWriter
from headrace.run.archive_drafts import ArchiveDrafts
from headrace.run.delivery_worker import DeliveryWorker
from headrace.run.evaluators import RuleEvaluator, WatchEvaluator
from headrace.run.lineage_publisher import LineagePublisher
from headrace.run.pipeline import Pipeline
from headrace.run.pipelines import NO_PIPELINES, new_shapes, pipelines_of
from headrace.run.rebuild_progress import rebuild_progress
from headrace.run.schedule import Schedule
from headrace.run.sinks import Sinks
from headrace.run.tables import Tables, between_epochs
from headrace.run.watch_constants import begin_watches, write_constants
from headrace.serving.database_store import DatabaseStore
from headrace.serving.hub import Hub
from headrace.serving.retention import AlertRetention
from headrace.spark.jobs import BatchJobs
from headrace.spark.relations import small_table

# Stores a plan, given the new shapes of watches; returns what to call when its views are built.
Change = Callable[[set[str]], Callable[[], None]]


class DeploymentPart(Protocol):
    """A component with threads of its own, which reports its problems."""

    @property
    def problems(self) -> Sequence[Problem]: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class RunContext:
    """What all deployments of a running project share."""

    spark: Any
    store: DatabaseStore
    topics: dict[str, LogWriter]
    hub: Hub
    lineage: LineagePublisher
    submit: Callable[[str, Sequence[bytes]], Future[Receipt]]
    report: Report
    close_watches: Callable[[set[str]], None]
    watchdog: Watchdog
    drafts: ArchiveDrafts


@dataclass(frozen=True, slots=True)
class Deployment:
    """The components that run a plan; constructing one starts nothing."""

    project: Project
    plan: Plan
    store: DatabaseStore
    pipelines: dict[str, Pipeline]
    schedule: Schedule
    sinks: Sinks
    rule_evaluator: RuleEvaluator
    watch_evaluator: WatchEvaluator
    deliveries: DeliveryWorker
    tables: Tables

    @staticmethod
    def of(context: RunContext, project: Project, plan: Plan) -> Deployment:
        """The deployment of a stored plan."""
        store, report = context.store, context.report
        pipelines = _pipelines(context, project, plan, NO_PIPELINES)
        read = partial(small_table, context.spark, project.folder)
        tables = Tables(plan.tables, project.folder, pipelines, store, read)
        retention = AlertRetention(store.db, project.settings.alerts.keep_us)
        schedule = Schedule(
            pipelines,
            context.topics,
            project.settings,
            report,
            tables=tables,
            retention=retention,
            jobs=BatchJobs(context.spark),
            watchdog=context.watchdog,
        )
        sinks = Sinks(plan, context.hub.reader, report)
        parts = _notifying_parts(context, project, plan)
        return Deployment(project, plan, store, pipelines, schedule, sinks, *parts, tables)

    def redeploy(
        self,
        context: RunContext,
        project: Project,
        plan: Plan,
        change: Change,
        stop: threading.Event,
    ) -> Deployment:
        """Replace this deployment with that of another plan. `change` stores the plan; what it
        returns is called when the views of the plan have been built. New rules are evaluated after
        that. NotReady if `stop` is set before all views were built.

        Archive steps and builds are paused meanwhile; rules and epochs only while the store is
        changed. Speed of flows that cannot be kept is stopped, and started again after the build:
        without speed, a build may end at any position.
        """
        with self.schedule.paused():
            kept = self._kept(plan)
            for name, pipeline in self.pipelines.items():
                if name not in kept:
                    pipeline.stop()
            self.halt()  # the new deployment continues the queues
            with between_epochs(kept.values()):
                on_built = change(new_shapes(plan, kept))
            new = self._successor(context, project, plan, kept)
            new.rule_evaluator.start(
                hold={rule.name for rule in plan.rules if rule not in self.plan.rules}
            )
            new.watch_evaluator.start()
            new.deliveries.start()
            try:
                jobs = BatchJobs(context.spark)
                if not new.build_until(stop, jobs, lambda pipeline: pipeline.has_new_views()):
                    raise NotReady(
                        "the change was rolled back: the project is shutting down",
                        hint="start the project and repeat the change.",
                    )
                on_built()
                new.rule_evaluator.release()
            except Exception:
                new.halt()
                raise
            self.schedule.replace(new.pipelines, new.tables)
            new.start_speed()
            return new

    def _kept(self, plan: Plan) -> dict[str, Pipeline]:
        """The pipelines that continue unchanged under another plan."""
        flows = {flow.name: flow for flow in flows_of(plan)}
        return {
            name: pipeline
            for name, pipeline in self.pipelines.items()
            if name in flows and pipeline.serves(plan, flows[name])
        }

    def _successor(
        self, context: RunContext, project: Project, plan: Plan, kept: Mapping[str, Pipeline]
    ) -> Deployment:
        """The deployment of another plan with these pipelines and new evaluators and deliveries."""
        pipelines = _pipelines(context, project, plan, kept)
        read = partial(small_table, context.spark, project.folder)
        tables = Tables(plan.tables, project.folder, pipelines, self.store, read, self.tables)
        parts = _notifying_parts(context, project, plan, self.deliveries)
        return Deployment(
            project, plan, self.store, pipelines, self.schedule, self.sinks, *parts, tables
        )

    # Start and stop

    @property
    def parts(self) -> tuple[DeploymentPart, ...]:
        return (
            self.schedule,
            self.sinks,
            self.rule_evaluator,
            self.watch_evaluator,
            self.deliveries,
        )

    def start(self) -> None:
        """Start speed, and all parts."""
        self.start_speed()
        for part in self.parts:
            part.start()

    def start_speed(self) -> None:
        for pipeline in self.pipelines.values():
            pipeline.start()

    @property
    def starting(self) -> int:
        """The number of flows whose speed has not finished its first turn."""
        return sum(pipeline.starting for pipeline in self.pipelines.values())

    def stop(self) -> None:
        """Finish what is in progress; the schedule first, because it drives the pipelines."""
        self.schedule.stop()
        for pipeline in self.pipelines.values():
            pipeline.stop()
        for part in self.parts[1:]:
            part.stop()

    def halt(self) -> None:
        """Stop the parts that a new deployment replaces, after evaluating rules and watches."""
        self.rule_evaluator.stop()
        self.watch_evaluator.stop()
        self.deliveries.halt()

    def drain(self, ended: Callable[[], bool] = lambda: False) -> None:
        """Deliver everything that is due, until `ended` returns True."""
        self.sinks.poll()
        self.rule_evaluator.evaluate()
        self.watch_evaluator.evaluate()
        self.deliveries.drain(ended)

    # Batch

    def build(
        self,
        only: Callable[[Pipeline], bool] = lambda pipeline: True,
        ended: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Catch up the views of all pipelines, or of some, to the end of the log; False if `ended`
        returned True before all were done.
        """
        for pipeline in filter(only, self.pipelines.values()):
            if ended():
                return False
            if promoted := pipeline.catch_up():
                self.schedule.note_promoted(promoted)
        return True

    def build_until(
        self, stop: threading.Event, jobs: BatchJobs, only: Callable[[Pipeline], bool]
    ) -> bool:
        """The same; `stop` cancels the jobs of the build."""
        with jobs.cancelled_by(stop):
            return self.build(only, stop.is_set)
        return False

    def rebuild_progress(self, flow: str, view: str) -> RebuildProgress | None:
        """The progress of the rebuild of a view; None for an unknown flow."""
        if (pipeline := self.pipelines.get(flow)) is None:
            return None
        events = pipeline.history_events()
        return rebuild_progress(self.schedule.rebuild_request(view), events, pipeline.build_time)

    # Watches

    def reload_constants(self, shapes: set[str], change: Callable[[], None] = lambda: None) -> None:
        """Replace the constants of shapes of watches between two epochs. A shape that is not
        deployed is rejected before anything changes, because its watches would never begin.
        """
        if unknown := shapes - {shape.name for shape in self.plan.shapes}:
            raise Conflict(
                f"watches of shape {min(unknown)} cannot start: the shape is not deployed",
                hint="add them again.",
            )

        def write() -> None:
            change()
            begin_watches(self.store, self.plan, shapes)
            write_constants(self.project.folder, self.store, self.plan, shapes)

        wanted = [shape for shape in self.plan.shapes if shape.name in shapes]
        self.tables.replace([name for shape in wanted for name in shape.tables], write)

    # Status

    def problems(self) -> list[Problem]:
        """The problems that parts and speed have reported."""
        speed = (pipeline.speed.problem for pipeline in self.pipelines.values())
        return deduplicated(*(part.problems for part in self.parts), filter(None, speed))

    def problems_of_watches(self) -> list[Problem]:
        """The problems of evaluating watches, and of destinations that only watches name."""
        return deduplicated(self.watch_evaluator.problems, self.deliveries.problems_of_watches)

    def lag_events(self) -> int:
        """Events in the logs that speed has not committed."""
        return sum(pipeline.lag_events() for pipeline in self.pipelines.values())

    def ends(self) -> dict[str, Position]:
        """The end of the logs of each flow."""
        return {name: pipeline.end() for name, pipeline in self.pipelines.items()}

    def behind(self, ends: Mapping[str, Position]) -> int:
        """Events before these ends that speed has not committed."""
        reached = {name: self.store.stream(name).position for name in ends}
        return sum(end.latest(reached[name]) - reached[name] for name, end in ends.items())

    def lag_of(self, stream: str) -> int:
        """Events of a stream that speed has not committed; 0 before speed runs, so that intake is
        not throttled during a start.
        """
        pipeline = self.pipelines.get(stream)
        return pipeline.lag_events() if pipeline and pipeline.speed_running else 0

    def phases(self, flow: str) -> dict[PositionRange, dict[str, int]]:
        """The milliseconds that a flow's newest epochs spent in each phase."""
        pipeline = self.pipelines.get(flow)
        return dict(pipeline.speed.phases) if pipeline else {}


def _pipelines(
    context: RunContext, project: Project, plan: Plan, kept: Mapping[str, Pipeline]
) -> dict[str, Pipeline]:
    context.lineage.publish_plan(plan)
    pipelines = pipelines_of(
        context.spark,
        project,
        plan,
        context.store,
        kept,
        context.watchdog,
        context.report,
        context.drafts,
    )
    for pipeline in pipelines.values():
        pipeline.on_build = context.lineage.publish_build
        pipeline.adopt(plan)
    return pipelines


def _notifying_parts(
    context: RunContext, project: Project, plan: Plan, before: DeliveryWorker | None = None
) -> tuple[RuleEvaluator, WatchEvaluator, DeliveryWorker]:
    db, report = context.store.db, context.report
    return (
        RuleEvaluator(plan, db, report),
        WatchEvaluator(plan, db, report, context.close_watches),
        DeliveryWorker(plan, project, db, context.submit, report, before=before),
    )
