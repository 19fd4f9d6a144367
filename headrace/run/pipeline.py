"""One flow's way through Spark: archive, speed and batch, wired to its logs and one store.

The pipeline has no thread of its own: the schedule calls `archive` and `build`, Spark's query
calls the epochs, and `mend` starts the query, and starts one again that has ended by a failure.
tests/run/test_runs.py and the kill tests run it whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from headrace.batch.build import Builder, Promoted
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
from headrace.run.outlet import Built
from headrace.run.pace import Pace
from headrace.serving.store import Store
from headrace.spark.feed import Feed
from headrace.spark.relations import register, reload
from headrace.speed.runner import EpochRunner


class Pipeline:
    """Archive, speed and batch of one stream, or of joined ones."""

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
        # Sessions apart, because each gives the stream's name another meaning.
        batch, speed = spark.newSession(), spark.newSession()
        self.sessions, self.folder = (batch, speed), project.folder
        for session in self.sessions:
            register(session, plan.tables, functions, project.folder)
        self._registered = set(plan.tables)
        self.builder = Builder(batch, flow, self.feeds, store, processors, clock)
        watched = partial(self._step, "speed", "an epoch", self.settings.watchdog.epoch_us)
        self.speed = EpochRunner(
            speed, flow, self.feeds, store, self.settings.speed, clock, processors, watched, report,
            vectorised=self.settings.spark.vectorised,
        )  # fmt: skip
        self._tables, self._flows = tables_of_flow(plan, flow), flows_of(plan)
        self.built: Built = _nobody
        self.pace = Pace()
        # Counted from zero, so that the first failure is an increase.
        meters.BUILDS.labels(flow.name, meters.FAILED)

    def serves(self, plan: Plan, flow: FlowPlan) -> bool:
        """Whether it can run another plan's views of a flow as it is: speed finds the views in the
        store, but its session knows only the tables that it was made with.
        """
        wanted = {table for table in plan.tables if table.name in tables_of_flow(plan, flow)}
        return self.flow == flow and wanted <= self._registered and not self.speed.stopping

    def adopt(self, plan: Plan) -> None:
        """Run the views of a plan that it serves."""
        self._tables, self._flows = tables_of_flow(plan, self.flow), flows_of(plan)

    @property
    def starting(self) -> bool:
        """Whether speed has not done its first turn yet."""
        return not self.speed.warm

    @property
    def speed_runs(self) -> bool:
        """Whether speed was started and commits epochs; not any more once it is to stop."""
        return self.speed.running

    @property
    def speed_works(self) -> bool:
        """Whether epochs are committed, and the last one did not fail."""
        return self.speed_runs and self.speed.problem is None

    def archive(self) -> int:
        """Move what has come since into the master."""
        events_max = self.settings.archive.step_events_max
        with self._archiving():
            return sum(archive.step(events_max) for archive in self.archives)

    def archive_all(self) -> None:
        """Move all that is in the logs now."""
        with self._archiving():
            for archive in self.archives:
                archive.step_to_end(self.settings.archive.step_events_max)

    def _archiving(self) -> AbstractContextManager[None]:
        return self._step("archive", "an archive step", self.settings.watchdog.archive_us)

    def _step(self, kind: str, what: str, limit_us: int) -> AbstractContextManager[None]:
        key = ProblemKey("flow", self.flow.name, kind)
        return self.watchdog.step(key, f"{what} of stream '{self.flow.name}'", limit_us)

    def end(self) -> Position:
        """Where the logs end now: all before it was acknowledged."""
        return whole(feed.end() for feed in self.feeds)

    def has_taken(self, end: Position) -> bool:
        """Whether `rebuild` would count all that is before a position: a boundary is where speed
        has cut a group, or anywhere if speed does not work.
        """
        return not self.speed_works or end <= self.store.stream(self.flow.name).position

    def rebuild(self, view: str) -> Promoted | None:
        """Build a view from the beginning to where speed is, or to the logs' end without it."""
        speed_runs = self.speed_works
        self.store.close_group(self.flow.name)
        self.archive_all()
        return self.build(frozenset({view}), speed_runs=speed_runs)

    def build(
        self, full: frozenset[str] = frozenset(), *, speed_runs: bool | None = None
    ) -> Promoted | None:
        began_us = self.clock()
        runs = self.speed_runs if speed_runs is None else speed_runs
        try:
            building = self._step("batch", "a build", self.settings.watchdog.build_us)
            with span("generation", stream=self.flow.name), building:
                promoted = self.builder.build(speed_runs=runs, full=full)
        except Exception as error:
            meters.BUILDS.labels(self.flow.name, meters.FAILED).inc()
            self.built(self.flow.name, began_us, reason_of(error))
            raise
        seconds = (self.clock() - began_us) / SECOND
        self._count_build(promoted, seconds)
        if promoted is not None:
            self.pace.note(sum(promoted.boundary.offsets) if full else promoted.events, seconds)
            self.built(self.flow.name, began_us)
        return promoted

    def _count_build(self, promoted: Promoted | None, seconds: float) -> None:
        result = meters.PROMOTED if promoted else meters.NOTHING
        meters.BUILDS.labels(self.flow.name, result).inc()
        if promoted is None:
            return
        meters.GENERATION_SECONDS.labels(self.flow.name).observe(seconds)
        for audit in promoted.audits:
            meters.DIFFERENCES.labels(shown_name(audit.view)).inc(audit.differences)

    def catch_up(self) -> Promoted | None:
        """All that is in the log now goes through batch; speed goes on from there."""
        self.archive_all()
        self.store.close_group(self.flow.name)
        return self.build()

    def needs_catch_up(self) -> bool:
        """Whether batch is the faster way to the log's end, or the only one: a view has no
        generation yet, or the log begins after what speed has to read.
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

    def reload(self, table: TablePlan) -> None:
        """Read a table again, for both layers."""
        for session in self.sessions:
            reload(session, table, self.folder)
        self.speed.tables.forget(table.name)

    def lag_events(self) -> int:
        """Events in the logs that speed has not committed."""
        return self.end() - self.store.stream(self.flow.name).position

    def history_events(self) -> int:
        """Events that a view is rebuilt from."""
        return sum(self.store.stream(self.flow.name).position.offsets)

    def tidy(self, topics: dict[str, LogWriter]) -> None:
        """Compact the masters' files and drop log segments that they hold."""
        for archive in self.archives:
            compact(archive.spark, archive.table, self.settings.archive.compact_files)
            topic = topics[archive.stream.name]
            topic.retain(self._kept(archive), self.settings.log.retention_us)

    def _kept(self, archive: Archive) -> Position:
        """The log keeps what is not archived, and what speed may have to go back to in any flow
        that reads the stream.
        """
        kept = archive.table.durable().position
        for flow in self._flows:
            boundary = flow.positions(self.store.stream(flow.name).boundary)
            for stream, reached in zip(flow.streams, boundary, strict=True):
                if stream.name == archive.stream.name:
                    kept = kept.earliest(reached)
        return kept

    def start(self) -> None:
        """Start speed, unless it runs."""
        if not self.speed.running:
            self.speed.start()

    def stop(self) -> None:
        self.speed.stop()


def tables_of_flow(plan: Plan, flow: FlowPlan) -> set[str]:
    """The tables that the views of a flow read."""
    return {table for view in plan.views if view.stream == flow.name for table in view.tables}


def _nobody(stream: str, began_us: int, problem: str = "") -> None:
    """Nobody asks for the lineage."""
