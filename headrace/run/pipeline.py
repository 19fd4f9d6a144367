"""One stream's way through Spark: archive, speed and batch, wired to one log and one store.

The pipeline has no thread of its own: the schedule calls `archive` and `build`, Spark's query
calls the epochs, and `mend` starts a query again that has ended by a failure.
tests/run/test_runs.py and the kill tests run it whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog

from headrace.batch.build import Builder, Promoted
from headrace.compile.plan import Plan, StreamPlan
from headrace.core.time import SECOND, Clock, now_us
from headrace.define.functions import FunctionDefinition
from headrace.define.processors import ProcessorDefinition
from headrace.define.project import Project
from headrace.log.topic import Topic
from headrace.master.archive import Archive
from headrace.run.layout import Layout
from headrace.serving.store import Store
from headrace.spark.relations import register
from headrace.speed.query import SpeedQuery

log = structlog.get_logger()
RETRY_MIN_US, RETRY_MAX_US = SECOND, 60 * SECOND


class StreamPipeline:
    """Archive, speed and batch of one stream."""

    def __init__(
        self,
        spark: Any,
        project: Project,
        plan: Plan,
        stream: StreamPlan,
        store: Store,
        functions: tuple[FunctionDefinition, ...],
        processors: Mapping[str, ProcessorDefinition],
        clock: Clock = now_us,
    ) -> None:
        layout = Layout.of(project)
        self.stream, self.store, self.settings, self.clock = stream, store, project.settings, clock
        self.archive_ = Archive(spark, stream, layout.log(stream.name), layout.master(stream.name))
        # Sessions apart, because each gives the stream's name another meaning.
        batch, speed = spark.newSession(), spark.newSession()
        for session in (batch, speed):
            register(session, plan.tables, functions, project.folder)
        self.builder = Builder(batch, stream, self.archive_.table, store, processors)
        self.speed = SpeedQuery(
            speed,
            stream,
            store,
            layout.log(stream.name),
            layout.work("run"),
            self.settings.speed,
            clock,
            processors,
        )
        self.problem: str | None = None
        self._failures, self._retry_at = 0, 0

    @property
    def speed_runs(self) -> bool:
        return self.speed.query is not None

    def archive(self) -> int:
        """Move what has come since into the master."""
        return self.archive_.step(self.settings.archive.step_events_max)

    def build(self, full: frozenset[str] = frozenset()) -> Promoted | None:
        return self.builder.build(speed_runs=self.speed_runs, full=full)

    def catch_up(self) -> Promoted | None:
        """All that is in the log now goes through batch; speed goes on from there."""
        self.archive_.step_to_end(self.settings.archive.step_events_max)
        self.store.close_group(self.stream.name)
        return self.build()

    def needs_catch_up(self) -> bool:
        """Whether batch is the faster way to the log's end, or a view has no generation yet."""
        from headrace.log.reader import TopicReader

        state = self.store.stream(self.stream.name)
        backlog = TopicReader(self.archive_.log).end() - state.position
        new = any(version.state == "building" for version in self.store.versions(self.stream.name))
        return new or backlog > self.settings.speed.catch_up_events

    def tidy(self, topic: Topic) -> None:
        """Compact the master's files and drop log segments that it holds."""
        self.archive_.table.compact(self.settings.archive.compact_files)
        # Speed may have to go back to the boundary, so the log keeps what comes after it.
        boundary = self.store.stream(self.stream.name).boundary
        kept = self.archive_.table.position().earliest(boundary)
        topic.retain(kept, self.settings.log.retention_us)

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
                stream=self.stream.name,
                problem=self.problem,
                retry_in_s=pause // SECOND,
            )
        if now >= self._retry_at:
            self.problem = None
            self.speed.start()

    def stop(self) -> None:
        self.speed.stop()


def _sentence(error: Any) -> str:
    text = str(error) if error is not None else "the query ended by itself"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if "Error" in line or "Exception" in line]
    return (told[-1] if told else lines[0] if lines else "unknown")[:300]
