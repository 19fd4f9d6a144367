"""One flow's way through Spark: archive, speed and batch, wired to its logs and one store.

The pipeline has no thread of its own: the schedule calls `archive` and `build`, Spark's query
calls the epochs, and `mend` starts a query again that has ended by a failure.
tests/run/test_runs.py and the kill tests run it whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog

from headrace.batch.build import Builder, Promoted
from headrace.compile.flow import FlowPlan, whole
from headrace.compile.plan import Plan, TablePlan
from headrace.core import meters
from headrace.core.position import Position
from headrace.core.rule import shown_name
from headrace.core.spans import span
from headrace.core.time import SECOND, Clock, now_us
from headrace.define.functions import FunctionDefinition
from headrace.define.processors import ProcessorDefinition
from headrace.define.project import Project
from headrace.log.topic import Topic
from headrace.master.archive import Archive
from headrace.master.compact import compact
from headrace.run.layout import Layout
from headrace.run.outlet import Built
from headrace.run.pace import Pace
from headrace.serving.store import Store
from headrace.spark.feed import Feed
from headrace.spark.relations import register, reload
from headrace.speed.query import SpeedQuery

log = structlog.get_logger()
RETRY_MIN_US, RETRY_MAX_US = SECOND, 60 * SECOND


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
        clock: Clock = now_us,
    ) -> None:
        layout = Layout.of(project)
        self.flow, self.store, self.settings, self.clock = flow, store, project.settings, clock
        self.archives = [archives[stream.name] for stream in flow.streams]
        self.feeds = tuple(Feed(a.stream, a.log, a.table) for a in self.archives)
        # Sessions apart, because each gives the stream's name another meaning.
        batch, speed = spark.newSession(), spark.newSession()
        self.sessions, self.folder = (batch, speed), project.folder
        for session in self.sessions:
            register(session, plan.tables, functions, project.folder)
        self.builder = Builder(batch, flow, self.feeds, store, processors, clock)
        self.speed = SpeedQuery(
            speed,
            flow,
            self.feeds,
            store,
            layout.work("run"),
            self.settings.speed,
            clock,
            processors,
        )
        self._tables = {t for v in plan.views if v.stream == flow.name for t in v.tables}
        self.problem: str | None = None
        self.built: Built = _nobody
        self.pace = Pace()
        self._failures, self._retry_at = 0, 0
        # Counted from zero, so that the first failure is an increase.
        meters.BUILDS.labels(flow.name, meters.FAILED)

    @property
    def speed_runs(self) -> bool:
        return self.speed.query is not None

    def archive(self) -> int:
        """Move what has come since into the master."""
        events_max = self.settings.archive.step_events_max
        return sum(archive.step(events_max) for archive in self.archives)

    def archive_all(self) -> None:
        """Move all that is in the logs now."""
        for archive in self.archives:
            archive.step_to_end(self.settings.archive.step_events_max)

    def build(self, full: frozenset[str] = frozenset()) -> Promoted | None:
        began_us = self.clock()
        try:
            with span("generation", stream=self.flow.name):
                promoted = self.builder.build(speed_runs=self.speed_runs, full=full)
        except Exception as error:
            meters.BUILDS.labels(self.flow.name, meters.FAILED).inc()
            self.built(self.flow.name, began_us, _sentence(error))
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
        """Whether batch is the faster way to the log's end, or a view has no generation yet."""
        new = any(version.state == "building" for version in self.store.versions(self.flow.name))
        return new or self.lag_events() > self.settings.speed.catch_up_events

    def reads(self, table: str) -> bool:
        """Whether a view of the flow reads this table."""
        return table in self._tables

    def reload(self, table: TablePlan) -> None:
        """Read a table again, for both layers."""
        for session in self.sessions:
            reload(session, table, self.folder)

    def lag_events(self) -> int:
        """Events in the logs that speed has not committed."""
        end = whole(feed.end() for feed in self.feeds)
        return end - self.store.stream(self.flow.name).position

    def history_events(self) -> int:
        """Events that a view is rebuilt from."""
        return sum(self.store.stream(self.flow.name).position.offsets)

    def tidy(self, topics: dict[str, Topic]) -> None:
        """Compact the masters' files and drop log segments that they hold."""
        for archive in self.archives:
            compact(archive.spark, archive.table, self.settings.archive.compact_files)
            topic = topics[archive.stream.name]
            topic.retain(self._kept(archive), self.settings.log.retention_us)

    def _kept(self, archive: Archive) -> Position:
        """The log keeps what is not archived, and what speed may have to go back to."""
        archived = archive.table.newest().position
        if self.flow.joined:
            return archived
        return archived.earliest(self.store.stream(self.flow.name).boundary)

    def mend(self) -> None:
        """Start the query again if it has failed, after a pause that doubles each time."""
        query, now = self.speed.query, self.clock()
        if query is None or query.isActive:
            # A query that has lived through the longest pause is well again.
            if self._failures and now - self._retry_at > RETRY_MAX_US:
                self._failures = 0
            return
        if self.problem is None:
            self._failures += 1
            pause = min(RETRY_MIN_US * 2 ** (self._failures - 1), RETRY_MAX_US)
            self._retry_at = now + pause
            self.problem = _sentence(query.exception())
            log.error(
                "speed.failed",
                stream=self.flow.name,
                problem=self.problem,
                retry_in_s=pause // SECOND,
            )
        if now >= self._retry_at:
            self.problem = None
            self.speed.start()

    def stop(self) -> None:
        self.speed.stop()


def _nobody(stream: str, began_us: int, problem: str = "") -> None:
    """Nobody asks for the lineage."""


def _sentence(error: Any) -> str:
    text = str(error) if error is not None else "the query ended by itself"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if "Error" in line or "Exception" in line]
    return (told[-1] if told else lines[0] if lines else "unknown")[:300]
