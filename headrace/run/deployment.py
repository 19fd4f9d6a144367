"""What runs one plan: a pipeline for each flow, the schedule of archive steps and builds, sinks,
alerts, watches and deliveries.

A running project has one deployment at a time. Other rules make another one, which takes over all
that does not change: the schedule, the sinks, and the pipelines with their running queries, which
find new views in the store. tests/run/test_rules_changed.py changes it while events come in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from headrace.api.resources.view_detail import RebuildProgress
from headrace.compile.flow import flows_of
from headrace.compile.plan import Plan
from headrace.core.errors import Conflict
from headrace.core.position import Position, PositionRange
from headrace.core.problems import Problem, deduplicated
from headrace.core.report import Report
from headrace.core.watchdog import Watchdog
from headrace.define.project import Project
from headrace.ingest.intake import Receipt
from headrace.log.protocol import LogWriter
from headrace.run.alerts import RuleEvaluator
from headrace.run.constants import begin_watches, write_constants
from headrace.run.deliveries import Deliveries
from headrace.run.once import NO_PIPELINES, begun_in, pipelines_of
from headrace.run.outlet import LineagePublisher
from headrace.run.pipeline import Pipeline
from headrace.run.rebuilds import rebuild_of
from headrace.run.schedule import Schedule
from headrace.run.sinks import Sinks
from headrace.run.tables import Tables, between_epochs
from headrace.run.watches import Watches
from headrace.serving.hub import Hub
from headrace.serving.retention import Retention
from headrace.serving.sqlite_store import SqliteStore
from headrace.spark.jobs import BatchJobs
from headrace.spark.relations import small_table

# Gives a plan to the store; what it returns is called when the plan's views have been built.
Change = Callable[[set[str]], Callable[[], None]]


class Part(Protocol):
    """Something of a deployment that works by itself, and says what hinders it."""

    @property
    def problems(self) -> Sequence[Problem]: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Ground:
    """What every deployment of a running project stands on."""

    spark: Any
    store: SqliteStore
    topics: dict[str, LogWriter]
    hub: Hub
    lineage: LineagePublisher
    submit: Callable[[str, Sequence[bytes]], Future[Receipt]]
    report: Report
    close_watches: Callable[[set[str]], None]
    watchdog: Watchdog


@dataclass(frozen=True, slots=True)
class Deployment:
    """All that runs a plan; nothing of it is started when it is made."""

    project: Project
    plan: Plan
    store: SqliteStore
    pipelines: dict[str, Pipeline]
    schedule: Schedule
    sinks: Sinks
    alerts: RuleEvaluator
    watches: Watches
    deliveries: Deliveries
    tables: Tables

    @staticmethod
    def of(ground: Ground, project: Project, plan: Plan) -> Deployment:
        """What runs a plan that the store has."""
        store, report = ground.store, ground.report
        pipelines = _pipelines(ground, project, plan, NO_PIPELINES)
        read = partial(small_table, ground.spark, project.folder)
        tables = Tables(plan.tables, project.folder, pipelines, store, read)
        retention = Retention(store.db, project.settings.alerts.keep_us)
        schedule = Schedule(
            pipelines,
            ground.topics,
            project.settings,
            report,
            tables=tables,
            retention=retention,
            jobs=BatchJobs(ground.spark),
        )
        sinks = Sinks(plan, ground.hub.reader, report)
        parts = _sending(ground, project, plan)
        return Deployment(project, plan, store, pipelines, schedule, sinks, *parts, tables)

    def replaced(self, ground: Ground, project: Project, plan: Plan, change: Change) -> Deployment:
        """What runs another plan in place of this one; `change` gives the plan to the store, and is
        told which shapes of watches begin with it. What it returns is called when the views of the
        plan have been built, and alerts of new rules are looked for after that.

        Archive steps and builds wait meanwhile, and alerts for the change of the store. Epochs wait
        only for that too, but for those of flows that cannot be kept: these are started after the
        build, because without speed a build ends where no epoch has.
        """
        with self.schedule.paused():
            kept = self._kept(plan)
            for name, pipeline in self.pipelines.items():
                if name not in kept:
                    pipeline.stop()
            self.halt()  # the queues are continued by the other plan
            with between_epochs(kept.values()):
                built = change(begun_in(plan, kept))
            made = self._with(ground, project, plan, kept)
            made.alerts.start(
                hold={rule.name for rule in plan.rules if rule not in self.plan.rules}
            )
            made.watches.start()
            made.deliveries.start()
            try:
                made.build(only=lambda pipeline: pipeline.has_new_views())
                built()
                made.alerts.release()
            except Exception:
                made.halt()
                raise
            self.schedule.replace(made.pipelines, made.tables)
            made.start_speed()
            return made

    def _kept(self, plan: Plan) -> dict[str, Pipeline]:
        """The pipelines that run as they are under another plan."""
        flows = {flow.name: flow for flow in flows_of(plan)}
        return {
            name: pipeline
            for name, pipeline in self.pipelines.items()
            if name in flows and pipeline.serves(plan, flows[name])
        }

    def _with(
        self, ground: Ground, project: Project, plan: Plan, kept: Mapping[str, Pipeline]
    ) -> Deployment:
        """What runs another plan with these pipelines; alerts, watches and deliveries are new."""
        pipelines = _pipelines(ground, project, plan, kept)
        read = partial(small_table, ground.spark, project.folder)
        tables = Tables(plan.tables, project.folder, pipelines, self.store, read, self.tables)
        parts = _sending(ground, project, plan, self.deliveries)
        return Deployment(
            project, plan, self.store, pipelines, self.schedule, self.sinks, *parts, tables
        )

    # Start and stop

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.schedule, self.sinks, self.alerts, self.watches, self.deliveries

    def start(self) -> None:
        """Start all parts, and speed."""
        for part in self.parts:
            part.start()
        self.start_speed()

    def start_speed(self) -> None:
        for pipeline in self.pipelines.values():
            pipeline.start()

    @property
    def starting(self) -> int:
        """How many streams have speed that is not warm yet."""
        return sum(pipeline.starting for pipeline in self.pipelines.values())

    def stop(self) -> None:
        """Finish what is in progress; the schedule first, because it gives pipelines work."""
        self.schedule.stop()
        for pipeline in self.pipelines.values():
            pipeline.stop()
        for part in (self.sinks, self.alerts, self.watches, self.deliveries):
            part.stop()

    def halt(self) -> None:
        """End what another deployment has anew; alerts that there are have been raised."""
        self.alerts.stop()
        self.watches.stop()
        self.deliveries.halt()

    def drain(self, ended: Callable[[], bool] = lambda: False) -> None:
        """Send all that waits to be sent, until the time for it has ended."""
        for part in (self.sinks, self.alerts, self.watches):
            part.look()
        self.deliveries.drain(ended)

    # Batch

    def build(
        self,
        only: Callable[[Pipeline], bool] = lambda pipeline: True,
        ended: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Bring the views of every stream, or of some, to all that is in the log now; whether it
        was done for all of them before the time for it had ended.
        """
        for pipeline in self.pipelines.values():
            if ended():
                return False
            if only(pipeline) and (promoted := pipeline.catch_up()):
                self.schedule.note_promoted(promoted)
        return True

    def rebuild_of(self, flow: str, view: str) -> RebuildProgress | None:
        """How far a rebuild of a view is; None if none is wanted."""
        if (pipeline := self.pipelines.get(flow)) is None:
            return None
        events = pipeline.history_events()
        return rebuild_of(self.schedule.rebuilding(view), events, pipeline.pace)

    # Watches

    def renew(self, shapes: set[str], change: Callable[[], None] = lambda: None) -> None:
        """Give shapes of watches other constants, from the next epoch on. A shape that is not
        deployed is refused before anything changes: its watches would never begin.
        """
        if unknown := shapes - {shape.name for shape in self.plan.shapes}:
            raise Conflict(
                f"watches of shape {min(unknown)} cannot begin, because it is not deployed",
                hint="add them again.",
            )

        def renew() -> None:
            change()
            begin_watches(self.store, self.plan, shapes)
            write_constants(self.project.folder, self.store, self.plan, shapes)

        wanted = [shape for shape in self.plan.shapes if shape.name in shapes]
        self.tables.replace([name for shape in wanted for name in shape.tables], renew)

    # What there is to tell

    def problems(self) -> list[Problem]:
        """Of the parts and of speed, each of which has said its own."""
        speed = (pipeline.speed.problem for pipeline in self.pipelines.values())
        return deduplicated(*(part.problems for part in self.parts), filter(None, speed))

    def problems_of_watches(self) -> list[Problem]:
        """Of looking for matches, and of destinations that only watches notify."""
        return deduplicated(self.watches.problems, self.deliveries.problems_of_watches)

    def lag_events(self) -> int:
        """Events in the logs that speed has not committed."""
        return sum(pipeline.lag_events() for pipeline in self.pipelines.values())

    def ends(self) -> dict[str, Position]:
        """The ends of the logs, by flow."""
        return {name: pipeline.end() for name, pipeline in self.pipelines.items()}

    def behind(self, ends: Mapping[str, Position]) -> int:
        """Events before these ends that speed has not committed."""
        reached = {name: self.store.stream(name).position for name in ends}
        return sum(end.latest(reached[name]) - reached[name] for name, end in ends.items())

    def lag_of(self, stream: str) -> int:
        """How many events of a stream wait for speed; none before it runs, because the log is the
        buffer of a start."""
        pipeline = self.pipelines.get(stream)
        return pipeline.lag_events() if pipeline and pipeline.speed_runs else 0

    def phases(self, flow: str) -> dict[PositionRange, dict[str, int]]:
        """What a flow's newest epochs spent their time on, in milliseconds."""
        pipeline = self.pipelines.get(flow)
        return dict(pipeline.speed.phases) if pipeline else {}


def _pipelines(
    ground: Ground, project: Project, plan: Plan, kept: Mapping[str, Pipeline]
) -> dict[str, Pipeline]:
    ground.lineage.deploy(plan)
    pipelines = pipelines_of(
        ground.spark, project, plan, ground.store, kept, ground.watchdog, ground.report
    )
    for pipeline in pipelines.values():
        pipeline.built = ground.lineage.built
        pipeline.adopt(plan)
    return pipelines


def _sending(
    ground: Ground, project: Project, plan: Plan, before: Deliveries | None = None
) -> tuple[RuleEvaluator, Watches, Deliveries]:
    db, report = ground.store.db, ground.report
    return (
        RuleEvaluator(plan, db, report),
        Watches(plan, db, report, ground.close_watches),
        Deliveries(plan, project, db, ground.submit, report, before=before),
    )
