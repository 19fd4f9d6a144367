"""What runs one plan: a pipeline for each flow, the schedule of archive steps and builds, sinks,
alerts and watches.

A running project has one deployment at a time; other rules make another one, which goes on from
what the store and the log have. tests/run/test_rules_changed.py changes it while events come in.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
from py4j.protocol import Py4JError

from headrace.api.observed.about import Rebuild
from headrace.compile.plan import Plan
from headrace.core.report import Report
from headrace.define.project import Project
from headrace.ingest.intake import Receipt
from headrace.log.topic import Topic
from headrace.run.alerts import Alerts
from headrace.run.constants import begin_watches, write_constants
from headrace.run.once import pipelines_of
from headrace.run.outlet import Lineage
from headrace.run.pipeline import Pipeline
from headrace.run.rebuilds import rebuild_of
from headrace.run.schedule import Schedule
from headrace.run.sinks import Sinks
from headrace.run.tables import Tables
from headrace.run.watches import Watches
from headrace.serving.hub import Hub
from headrace.serving.retention import Retention
from headrace.serving.sqlite_store import SqliteStore


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
    topics: dict[str, Topic]
    hub: Hub
    lineage: Lineage
    submit: Callable[[str, Sequence[bytes]], Future[Receipt]]
    report: Report
    close_watches: Callable[[set[str]], None]


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

    @staticmethod
    def of(ground: Ground, project: Project, plan: Plan, before: Deployment | None) -> Deployment:
        """What runs a plan that the store has; it counts on from the deployment before it."""
        store, submit, report = ground.store, ground.submit, ground.report
        pipelines = pipelines_of(ground.spark, project, plan, store)
        ground.lineage.deploy(plan)
        for pipeline in pipelines.values():
            pipeline.built = ground.lineage.built
        schedule = Schedule(
            pipelines,
            ground.topics,
            project.settings,
            report,
            tables=Tables(plan.tables, project.folder, pipelines, store),
            retention=Retention(store.db, project.settings.alerts.keep_us),
        )
        if before is not None:
            schedule.go_on_from(before.schedule)
        return Deployment(
            project,
            plan,
            store,
            pipelines,
            schedule,
            Sinks(plan, project.folder, ground.hub.reader, submit, report),
            Alerts(plan, project, store.db, submit, report),
            Watches(plan, project, store.db, submit, report, ground.close_watches),
        )

    # Start and stop

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.schedule, self.sinks, self.alerts, self.watches

    def start(self) -> None:
        for pipeline in self.pipelines.values():
            pipeline.speed.start()
        for part in self.parts:
            part.start()

    def stop(self) -> None:
        """Finish what is in progress; the schedule first, because it gives pipelines work."""
        self.schedule.stop()
        for pipeline in self.pipelines.values():
            pipeline.stop()
        for part in (self.sinks, self.alerts, self.watches):
            part.stop()

    def drain(self) -> None:
        """Send all that waits to be sent."""
        self.sinks.drain()
        self.alerts.drain()

    # Batch

    def build(self, only: Callable[[Pipeline], bool] = lambda pipeline: True) -> None:
        """Bring the views of every stream, or of some, to all that is in the log now."""
        for pipeline in self.pipelines.values():
            if only(pipeline) and (promoted := pipeline.catch_up()):
                self.schedule.note_promoted(promoted)

    def rebuild_of(self, flow: str, view: str) -> Rebuild | None:
        """How far a rebuild of a view is; None if none is wanted."""
        if (pipeline := self.pipelines.get(flow)) is None:
            return None
        events = pipeline.history_events()
        return rebuild_of(self.schedule.rebuilding(view), events, pipeline.pace)

    # Watches

    def renew(self, shapes: set[str], change: Callable[[], None] = lambda: None) -> None:
        """Give shapes of watches other constants, from the next epoch on."""
        tables = self.schedule.tables
        assert tables is not None

        def renew() -> None:
            change()
            begin_watches(self.store, self.plan, shapes)
            write_constants(self.project.folder, self.store, self.plan, shapes)

        wanted = [shape for shape in self.plan.shapes if shape.name in shapes]
        tables.replace([name for shape in wanted for name in shape.tables], renew)

    # What there is to tell

    def problems(self) -> dict[str, str]:
        found = {name: said for part in self.parts for name, said in part.problems.items()}
        for name, pipeline in self.pipelines.items():
            if pipeline.problem:
                found[f"speed {name}"] = f"speed of stream '{name}' failed: {pipeline.problem}"
        return found

    def lag_events(self) -> int:
        """Events in the logs that speed has not committed."""
        return sum(pipeline.lag_events() for pipeline in self.pipelines.values())

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
