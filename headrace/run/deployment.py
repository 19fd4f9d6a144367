"""What runs one plan: a pipeline for each flow, the schedule of archive steps and builds, sinks,
alerts and watches.

A running project has one deployment at a time. Other rules make another one, which takes over all
that does not change: the schedule, the sinks, and the pipelines with their running queries, which
find new views in the store. tests/run/test_rules_changed.py changes it while events come in.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import msgspec
from py4j.protocol import Py4JError

from headrace.api.observed.about import Rebuild
from headrace.compile.flow import flows_of
from headrace.compile.plan import Plan
from headrace.core.errors import Conflict
from headrace.core.position import Position
from headrace.core.report import Report
from headrace.core.watchdog import Watchdog
from headrace.define.project import Project
from headrace.ingest.intake import Receipt
from headrace.log.protocol import LogWriter
from headrace.run.alerts import Alerts
from headrace.run.constants import begin_watches, write_constants
from headrace.run.once import NO_PIPELINES, begun_in, pipelines_of
from headrace.run.outlet import Lineage
from headrace.run.pipeline import Pipeline
from headrace.run.rebuilds import rebuild_of
from headrace.run.schedule import Schedule
from headrace.run.sinks import Sinks
from headrace.run.starts import Starts
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
    def problems(self) -> Mapping[str, str]: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Ground:
    """What every deployment of a running project stands on."""

    spark: Any
    store: SqliteStore
    topics: dict[str, LogWriter]
    hub: Hub
    lineage: Lineage
    submit: Callable[[str, Sequence[bytes]], Future[Receipt]]
    report: Report
    close_watches: Callable[[set[str]], None]
    watchdog: Watchdog
    starts: Starts


@dataclass(frozen=True, slots=True)
class Deployment:
    """All that runs a plan; nothing of it is started when it is made."""

    project: Project
    plan: Plan
    store: SqliteStore
    pipelines: dict[str, Pipeline]
    schedule: Schedule
    sinks: Sinks
    alerts: Alerts
    watches: Watches
    tables: Tables

    @staticmethod
    def of(ground: Ground, project: Project, plan: Plan) -> Deployment:
        """What runs a plan that the store has."""
        store, submit, report = ground.store, ground.submit, ground.report
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
        sinks = Sinks(plan, project, ground.hub.reader, submit, report)
        parts = _alerts(ground, project, plan), _watches(ground, project, plan)
        return Deployment(project, plan, store, pipelines, schedule, sinks, *parts, tables)

    def replaced(self, ground: Ground, project: Project, plan: Plan, change: Change) -> Deployment:
        """What runs another plan in place of this one; `change` gives the plan to the store, and is
        told which shapes of watches begin with it. What it returns is called when the views of the
        plan have been built, and alerts of new rules are looked for after that.

        Archive steps and builds wait meanwhile, and alerts for the change of the store. Epochs wait
        only for that too, but for those of flows that cannot be kept: the schedule starts these.
        A query that runs and fails during the build is started again; one that does not run yet is
        started after it, because without speed a build ends where no epoch has.
        """
        with self.schedule.paused():
            kept = self._kept(plan)
            self.schedule.mend_only({name: p for name, p in kept.items() if p.speed_runs})
            for name, pipeline in self.pipelines.items():
                if name not in kept:
                    pipeline.stop()
            # Their queues are continued by those of the other plan.
            self.alerts.halt()
            self.watches.halt()
            with between_epochs(kept.values()):
                built = change(begun_in(plan, kept))
            made = self._with(ground, project, plan, kept)
            made.alerts.start(
                hold={rule.name for rule in plan.rules if rule not in self.plan.rules}
            )
            made.watches.start()
            try:
                made.build(only=lambda pipeline: pipeline.has_new_views())
                built()
                made.alerts.release()
            except Exception:
                made.alerts.halt()
                made.watches.halt()
                raise
            self.schedule.replace(made.pipelines, made.tables)
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
        """What runs another plan with these pipelines; alerts and watches are new."""
        pipelines = _pipelines(ground, project, plan, kept)
        read = partial(small_table, ground.spark, project.folder)
        tables = Tables(plan.tables, project.folder, pipelines, self.store, read, self.tables)
        parts = _alerts(ground, project, plan), _watches(ground, project, plan)
        return Deployment(
            project, plan, self.store, pipelines, self.schedule, self.sinks, *parts, tables
        )

    # Start and stop

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.schedule, self.sinks, self.alerts, self.watches

    def start(self) -> None:
        """Start all parts; the schedule then starts speed, a few streams at a time."""
        for part in self.parts:
            part.start()

    @property
    def starting(self) -> int:
        """How many streams have not been started yet."""
        return sum(pipeline.starting for pipeline in self.pipelines.values())

    def stop(self) -> None:
        """Finish what is in progress; the schedule first, because it gives pipelines work."""
        self.schedule.stop()
        for pipeline in self.pipelines.values():
            pipeline.stop()
        for part in (self.sinks, self.alerts, self.watches):
            part.stop()

    def drain(self, ended: Callable[[], bool] = lambda: False) -> None:
        """Send all that waits to be sent, until the time for it has ended."""
        self.sinks.drain()
        self.alerts.drain(ended)
        self.watches.drain(ended)

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

    def rebuild_of(self, flow: str, view: str) -> Rebuild | None:
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

    def problems(self) -> dict[str, str]:
        """Of the parts, each of which has said its own."""
        return {name: said for part in self.parts for name, said in part.problems.items()}

    def speed_problems(self) -> dict[str, str]:
        return {
            f"speed {name}": f"speed of stream '{name}' failed: {problem}"
            for name, pipeline in self.pipelines.items()
            if (problem := pipeline.starter.problem)
        }

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

    def progress(self, flow: str) -> list[Any]:
        """What Spark says of a flow's newest micro-batches."""
        pipeline = self.pipelines.get(flow)
        query = pipeline.speed.query if pipeline else None
        # A JVM that was killed says nothing, and what the store has of the epochs is still told.
        with contextlib.suppress(Py4JError, OSError):
            return [msgspec.json.decode(b.json) for b in query.recentProgress] if query else []
        return []


def _pipelines(
    ground: Ground, project: Project, plan: Plan, kept: Mapping[str, Pipeline]
) -> dict[str, Pipeline]:
    ground.lineage.deploy(plan)
    pipelines = pipelines_of(
        ground.spark, project, plan, ground.store, kept, ground.watchdog, ground.starts
    )
    for pipeline in pipelines.values():
        pipeline.built = ground.lineage.built
        pipeline.adopt(plan)
    return pipelines


def _alerts(ground: Ground, project: Project, plan: Plan) -> Alerts:
    return Alerts(plan, project, ground.store.db, ground.submit, ground.report)


def _watches(ground: Ground, project: Project, plan: Plan) -> Watches:
    given = ground.store.db, ground.submit, ground.report, ground.close_watches
    return Watches(plan, project, *given)
