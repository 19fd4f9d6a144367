"""Archive, speed and batch of one flow, connected to its logs and the store.

The pipeline has no thread of its own: the schedule calls `archive`, `build` and `tidy`, and
`start` starts the thread of speed. tests/run/test_runs.py and the kill tests run all of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import pyarrow as pa

from headrace.batch.build import Builder, BuildResult
from headrace.compile.flow import FlowPlan, flows_of, whole
from headrace.compile.plan import Plan, TablePlan
from headrace.core import meters
from headrace.core.position import Position
from headrace.core.problems import ProblemKey, reason_of
from headrace.core.report import Report
from headrace.core.rule import shown_name
from headrace.core.spans import span
from headrace.core.time import SECOND, Clock, now_us
from headrace.core.watchdog import Watchdog
from headrace.define.functions import FunctionDefinition
from headrace.define.processors import ProcessorDefinition
from headrace.define.project import Project
from headrace.log.protocol import LogWriter
from headrace.master.archive import Archive
from headrace.master.compact import compact
from headrace.run.build_time import BuildTimeEstimate
from headrace.run.lineage_publisher import OnBuild
from headrace.serving.store import Store
from headrace.spark.feed import Feed
from headrace.spark.relations import register, reload
from headrace.speed.runner import EpochRunner


class Pipeline:
    """Archive, speed and batch of one stream, or of joined streams."""

    def __init__(
        self,
        spark: Any,
        project: Project,
        plan: Plan,
        flow: FlowPlan,
        archives: dict[str, Archive],
        store: Store,
        functions: tuple[FunctionDefinition, ...],
        processors: Mapping[str, ProcessorDefinition],
        watchdog: Watchdog,
        report: Report,
        clock: Clock = now_us,
    ) -> None:
        self.flow, self.store, self.settings = flow, store, project.settings
        self.watchdog, self.clock = watchdog, clock
        self.archives = [archives[stream.name] for stream in flow.streams]
        self.feeds = tuple(Feed(a.stream, a.log, a.table) for a in self.archives)
        # Two sessions, because each registers other relations under the stream's name.
        batch, speed = spark.newSession(), spark.newSession()
        self.sessions, self.folder = (batch, speed), project.folder
        for session in self.sessions:
            register(session, plan.tables, functions, project.folder)
        self._registered = set(plan.tables)
        vectorised = self.settings.spark.vectorised
        self.builder = Builder(
            batch, flow, self.feeds, store, processors, clock, self.settings.batch,
            vectorised=vectorised,
        )  # fmt: skip
        watched = partial(self._step, "speed", "an epoch", self.settings.watchdog.epoch_us)
        self.speed = EpochRunner(
            speed, flow, self.feeds, store, self.settings.speed, clock, processors, watched, report,
            vectorised=vectorised,
        )  # fmt: skip
        self._tables, self._flows = tables_of_flow(plan, flow), flows_of(plan)
        self.on_build: OnBuild = _ignore
        self.build_time = BuildTimeEstimate()
        # Exported as zero, so that the first failure is an increase.
        meters.BUILDS.labels(flow.name, meters.FAILED)

    def serves(self, plan: Plan, flow: FlowPlan) -> bool:
        """Whether it can run the views of another plan unchanged: speed reads the views from the
        store, but its session has only the tables of the first plan.
        """
        wanted = {table for table in plan.tables if table.name in tables_of_flow(plan, flow)}
        return self.flow == flow and wanted <= self._registered and not self.speed.stopping

    def adopt(self, plan: Plan) -> None:
        """Run the views of another plan, for which `serves` is True."""
        self._tables, self._flows = tables_of_flow(plan, self.flow), flows_of(plan)

    @property
    def starting(self) -> bool:
        """Whether speed has not finished its first turn."""
        return not self.speed.warm

    @property
    def speed_running(self) -> bool:
        """Whether speed commits epochs; False once it is to stop."""
        return self.speed.running

    @property
    def speed_healthy(self) -> bool:
        """Whether speed is running and its last epoch did not fail."""
        return self.speed_running and self.speed.problem is None

    def archive(self) -> int:
        """Copy new events from the logs into the master."""
        events_max = self.settings.archive.step_events_max
        with self._archiving():
            return sum(archive.step(events_max) for archive in self.archives)

    def archive_all(self) -> None:
        """Copy all events that are in the logs now into the master."""
        with self._archiving():
            for archive in self.archives:
                archive.step_to_end(self.settings.archive.step_events_max)

    def _archiving(self) -> AbstractContextManager[None]:
        return self._step("archive", "an archive step", self.settings.watchdog.archive_us)

    def _step(self, kind: str, what: str, limit_us: int) -> AbstractContextManager[None]:
        key = ProblemKey("flow", self.flow.name, kind)
        return self.watchdog.step(key, f"{what} of stream '{self.flow.name}'", limit_us)

    def end(self) -> Position:
        """The end of the logs: all events before it were acknowledged."""
        return whole(feed.end() for feed in self.feeds)

    def has_committed(self, end: Position) -> bool:
        """Whether `rebuild` would include all events before a position: a build ends where speed
        has committed a group, or anywhere if speed is not healthy.
        """
        return not self.speed_healthy or end <= self.store.stream(self.flow.name).position

    def rebuild(self, view: str) -> BuildResult | None:
        """Build a view from its whole history up to speed's position, or up to the logs' end."""
        speed_runs = self.speed_healthy
        self.store.close_group(self.flow.name)
        self.archive_all()
        return self.build(frozenset({view}), speed_runs=speed_runs)

    def build(
        self, full: frozenset[str] = frozenset(), *, speed_runs: bool | None = None
    ) -> BuildResult | None:
        began_us = self.clock()
        runs = self.speed_running if speed_runs is None else speed_runs
        try:
            building = self._step("batch", "a build", self.settings.watchdog.build_us)
            with span("generation", stream=self.flow.name), building:
                promoted = self.builder.build(speed_runs=runs, full=full)
        except Exception as error:
            meters.BUILDS.labels(self.flow.name, meters.FAILED).inc()
            self.on_build(self.flow.name, began_us, reason_of(error))
            raise
        seconds = (self.clock() - began_us) / SECOND
        self._count_build(promoted, seconds)
        if promoted is not None:
            events = sum(promoted.boundary.offsets) if full else promoted.events
            self.build_time.add(events, seconds)
            self.on_build(self.flow.name, began_us)
        return promoted

    def _count_build(self, promoted: BuildResult | None, seconds: float) -> None:
        result = meters.PROMOTED if promoted else meters.NOTHING
        meters.BUILDS.labels(self.flow.name, result).inc()
        if promoted is None:
            return
        meters.GENERATION_SECONDS.labels(self.flow.name).observe(seconds)
        for audit in promoted.audits:
            meters.DIFFERENCES.labels(shown_name(audit.view)).inc(audit.differences)

    def catch_up(self) -> BuildResult | None:
        """Build all events that are in the logs now; speed continues after them."""
        self.archive_all()
        self.store.close_group(self.flow.name)
        return self.build()

    def needs_catch_up(self) -> bool:
        """Whether batch must process the log: speed is far behind, a view has no generation yet, or
        the log starts after the position of speed.
        """
        behind = self.lag_events() > self.settings.speed.catch_up_events
        return behind or self.has_new_views() or not self._log_reaches_back()

    def _log_reaches_back(self) -> bool:
        first, state = whole(f.start() for f in self.feeds), self.store.stream(self.flow.name)
        return first <= state.position and first <= state.boundary

    def has_new_views(self) -> bool:
        """Whether a view has no generation yet."""
        return not all(version.live for version in self.store.versions(self.flow.name))

    def reads(self, table: str) -> bool:
        """Whether a view of the flow reads this table."""
        return table in self._tables

    def keep_rows(self, table: str, rows: pa.Table) -> None:
        """Compute with these rows of a table, for both layers."""
        for tables in (self.builder.tables, self.speed.tables):
            tables.keep(table, rows)

    def reload(self, table: TablePlan) -> None:
        """Read a table again, for both layers."""
        for session in self.sessions:
            reload(session, table, self.folder)
        for tables in (self.builder.tables, self.speed.tables):
            tables.forget(table.name)

    def lag_events(self) -> int:
        """Events in the logs that speed has not committed."""
        return self.end() - self.store.stream(self.flow.name).position

    def history_events(self) -> int:
        """The number of events that a rebuild reads."""
        return sum(self.store.stream(self.flow.name).position.offsets)

    def tidy(self, topics: dict[str, LogWriter]) -> None:
        """Compact the files of the masters, and drop log segments that are archived."""
        with self._step("tidy", "the cleanup", self.settings.watchdog.archive_us):
            for archive in self.archives:
                compact(archive.spark, archive.table, self.settings.archive.compact_files)
                topic = topics[archive.stream.name]
                topic.retain(self._kept(archive), self.settings.log.retention_us)

    def _kept(self, archive: Archive) -> Position:
        """The position from which the log is retained: events that are not archived, and those that
        speed of any flow may read again.
        """
        kept = archive.table.durable().position
        for flow in self._flows:
            boundary = flow.positions(self.store.stream(flow.name).boundary)
            for stream, reached in zip(flow.streams, boundary, strict=True):
                if stream.name == archive.stream.name:
                    kept = kept.earliest(reached)
        return kept

    def start(self) -> None:
        """Start speed, unless it is running."""
        if not self.speed.running:
            self.speed.start()

    def stop(self) -> None:
        self.speed.stop()


def tables_of_flow(plan: Plan, flow: FlowPlan) -> set[str]:
    """The tables that the views of a flow read."""
    return {table for view in plan.views if view.stream == flow.name for table in view.tables}


def _ignore(stream: str, began_us: int, problem: str = "") -> None:
    """Publishes no lineage."""
