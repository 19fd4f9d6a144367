"""A build: the events of a position range in the master -> partials, staged in the store.

A full build reads [0, boundary), an incremental one [old boundary, boundary), which the store
merges by the same merge that combines batch and speed. A view over joined streams is always built
in full, because a new event may match any event of the history. The boundary is the end of one of
speed's groups of epochs; while speed is stopped, it may be any position at or after speed's.

The first to compute some events for a view takes the vectorised kernel, the second Spark SQL, so
that their comparison is one of two engines. Batch is first where speed has not answered for the
range: in the first build of a version, and when it passes speed. It is second when it follows
speed, and in a rebuild. Only a range that is too long to be computed in Spark SQL beside speed
takes the kernel twice. Epochs fold the events of carried views in Spark SQL, so builds of these
that follow speed take the kernel.
tests/laws/test_seam.py checks builds against the reference at every boundary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import structlog

from headrace.carry.process import Marks
from headrace.compile.flow import FlowPlan, whole
from headrace.compile.plan import ViewPlan
from headrace.core.failpoint import failpoint
from headrace.core.position import Position, PositionRange
from headrace.core.time import Clock, now_us
from headrace.define.processors import NO_PROCESSORS, ProcessorDefinition
from headrace.define.settings import BatchSettings
from headrace.kernel.partials import KernelJob
from headrace.serving.store import (
    AuditResult,
    StagedBuild,
    Store,
    StreamState,
    Superseded,
    Version,
)
from headrace.serving.watermark import FlowProgress, Times
from headrace.spark.broadcast_tables import BroadcastTables
from headrace.spark.carry import CarryJob, FoldResult
from headrace.spark.feed import Feed
from headrace.spark.fold_kernel import KernelFold
from headrace.spark.join_parameters import watermark_parameters, with_new
from headrace.spark.kernel_job import run_over_master

log = structlog.get_logger()
FOLD_EVENTS_MAX = 10_000_000  # the kernel has all events of a key in memory, Spark SQL has not
# The rows of a fold are partials, and the values behind exact distinct counts.
FoldedRows = tuple[FoldResult, pa.Table, dict[str, pa.Table]]
FoldEvents = Callable[[Version, FlowProgress | None, FlowProgress], FoldedRows]


@dataclass(frozen=True, slots=True)
class BuildResult:
    """A generation that was built and promoted."""

    stream: str
    generation: int
    boundary: Position
    events: int
    audits: tuple[AuditResult, ...]


class Builder:
    """Builds the views of one flow from its streams' masters. `spark` is a session with its tables
    registered.
    """

    def __init__(
        self,
        spark: Any,
        flow: FlowPlan,
        feeds: tuple[Feed, ...],
        store: Store,
        processors: Mapping[str, ProcessorDefinition] = NO_PROCESSORS,
        clock: Clock = now_us,
        settings: BatchSettings | None = None,
        *,
        vectorised: bool = True,
    ) -> None:
        self.spark, self.flow, self.feeds, self.store = spark, flow, feeds, store
        self.processors, self.clock = processors, clock
        self.settings, self._vectorised = settings or BatchSettings(), vectorised
        self.tables = BroadcastTables(spark)

    def build(self, *, speed_runs: bool, full: frozenset[str] = frozenset()) -> BuildResult | None:
        """Build all views to the newest possible boundary and promote them; None if nothing has
        changed.

        Views named in `full` are rebuilt from the beginning.
        """
        while True:
            try:
                return self._build(speed_runs, full)
            except Superseded as superseded:
                log.info("build.superseded", why=str(superseded))

    def _build(self, speed_runs: bool, full: frozenset[str]) -> BuildResult | None:
        reached, group = self._boundary(speed_runs)
        state, boundary = self.store.stream(self.flow.name), reached.position
        versions = [v for v in self.store.versions(self.flow.name) if v.since <= boundary]
        # A live version that a new one is about to replace is not built again.
        replaced = {v.name for v in versions if not v.live}
        versions = [v for v in versions if not v.live or v.name not in replaced]
        waiting = [v for v in versions if not v.live or v.name in full]
        if reached == state.built and not waiting:
            return None
        wanted = versions if reached != state.built else waiting
        whole = [v for v in wanted if v in waiting or self.flow.joined]
        since = [v for v in wanted if v not in whole]
        staged = [
            *self._stage_all(whole, state, None, reached),
            *self._stage_all(since, state, state.built, reached),
        ]
        failpoint("generation.staged")
        audits = tuple(self._audit(build, group, boundary) for build in staged)
        number = self.store.promote(
            self.flow.name, state.generation, reached, group, staged, audits
        )
        return BuildResult(self.flow.name, number, boundary, boundary - state.boundary, audits)

    def _boundary(self, speed_runs: bool) -> tuple[FlowProgress, int]:
        """The boundary of the build, and the last group before it."""
        archived, highs = self._archived()
        state = self.store.stream(self.flow.name)
        if speed_runs:
            # Otherwise the last events of an idle stream would never be built.
            self.store.close_old_group(self.flow.name)
        else:
            self.store.close_group(self.flow.name)
        groups = self.store.closed_groups(self.flow.name)
        if not speed_runs and state.position <= archived:
            # The watermark at speed's position is already fixed; beyond it, it is fixed here.
            further = archived != state.position
            reached = state.after(archived, highs, self.clock()) if further else state.reached
            return reached, max((group.number for group in groups), default=0)
        usable = [g for g in groups if g.reached.position <= archived and state.built <= g.reached]
        return (usable[-1].reached, usable[-1].number) if usable else (state.built, 0)

    def _archived(self) -> tuple[Position, Times]:
        """The end of the masters, and the highest event times there."""
        found = [feed.table.newest() for feed in self.feeds]
        highs = tuple(high for version in found for high in version.highs)
        return whole(version.position for version in found), highs

    def _stage_all(
        self,
        versions: Sequence[Version],
        state: StreamState,
        before: FlowProgress | None,
        reached: FlowProgress,
    ) -> list[StagedBuild]:
        """Build views up to the new boundary, from the old boundary or from the beginning."""
        range = self._range(before, reached)
        answered = before is None or (
            reached.position <= state.position and len(range) <= self.settings.compare_events_max
        )
        kernel = [v for v in versions if self._takes_kernel(v, answered, full=before is None)]
        stateless = [version for version in kernel if version.plan.kernel.stateless]
        folded = [version for version in kernel if version.plan.carry]
        rest = [version for version in versions if version not in (*stateless, *folded)]
        return [
            *self._stage_by_kernel(stateless, range, full=before is None),
            *(self._stage_folded(v, self._fold, before, reached) for v in folded),
            *(self._stage(version, before, reached) for version in rest),
        ]

    def _takes_kernel(self, version: Version, answered: bool, *, full: bool) -> bool:
        if not (self._vectorised and version.plan.kernel.sql):
            return False
        follows_epochs = version.plan.carry is not None and not full
        return follows_epochs or not (version.live and answered)

    def _range(self, before: FlowProgress | None, reached: FlowProgress) -> PositionRange:
        lower = before.position if before else Position.start(self.flow.partitions)
        return PositionRange(lower, reached.position)

    def _stage_by_kernel(
        self, versions: Sequence[Version], range: PositionRange, *, full: bool
    ) -> list[StagedBuild]:
        """Build views in one job, which reads the master once for all of them."""
        if not versions:
            return []
        [feed] = self.feeds
        read = {name for version in versions for name in version.plan.kernel.columns}
        tables = sorted({name for version in versions for name in version.plan.tables})
        queries = {v.id: v.plan.kernel.sql for v in versions}
        for version in versions:
            values = version.plan.kernel.values
            queries |= {f"{version.id} {column}": sql for column, sql in values}
        job = KernelJob(feed.stream.name, queries)
        parts = feed.master_parts(range, read)
        found = run_over_master(self.spark, job, parts, self.tables.sent(tables))
        staged = []
        for version in versions:
            counted = version.plan.kernel.values
            given = {column: found[f"{version.id} {column}"] for column, _ in counted}
            staged.append(self.store.stage(version, full, found[version.id], given))
        return staged

    def _stage(
        self, version: Version, before: FlowProgress | None, reached: FlowProgress
    ) -> StagedBuild:
        """Build a view with Spark SQL."""
        if version.plan.carry:
            return self._stage_folded(version, self._fold_by_spark, before, reached)
        given = self._register(self._range(before, reached), reached)
        rows = self.spark.sql(version.plan.partial_sql, args=given).toArrow()
        return self.store.stage(version, before is None, rows, self._values(version.plan, given))

    def _stage_folded(
        self,
        version: Version,
        fold: FoldEvents,
        before: FlowProgress | None,
        reached: FlowProgress,
    ) -> StagedBuild:
        """Fold the events onto the states at the old boundary; or fold all events, if one of these
        is out of order with respect to those states.
        """
        folded, rows, values = fold(version, before, reached)
        if folded.disordered:
            return self._stage_folded(version, fold, None, reached)
        return self.store.stage(version, before is None, rows, values, folded.states)

    def _fold(
        self, version: Version, before: FlowProgress | None, reached: FlowProgress
    ) -> FoldedRows:
        few = len(self._range(before, reached)) <= FOLD_EVENTS_MAX
        fold = self._fold_by_kernel if few else self._fold_by_spark
        return fold(version, before, reached)

    def _fold_by_kernel(
        self, version: Version, before: FlowProgress | None, reached: FlowProgress
    ) -> FoldedRows:
        range, [feed] = self._range(before, reached), self.feeds
        job = KernelFold(
            self.spark,
            feed.stream.name,
            version.plan,
            feed.master_parts(range, version.plan.kernel.columns),
            self.tables.sent(version.plan.tables),
            self.processors,
            len(range),
            *_watermarks(before, reached),
        )
        folded, results = job.fold(job.states(self.store, version) if before else [])
        return folded, results.pop(""), results

    def _fold_by_spark(
        self, version: Version, before: FlowProgress | None, reached: FlowProgress
    ) -> FoldedRows:
        range, carry = self._range(before, reached), version.plan.carry
        assert carry is not None
        self._register(range, reached)
        marks, since_us = _watermarks(before, reached)
        job = CarryJob(
            self.spark, carry, self.processors, len(range), marks=marks, since_us=since_us
        )
        folded = job.fold(job.states(self.store, version, at_boundary=True) if before else [])
        rows = self.spark.sql(version.plan.partial_sql).toArrow()
        return folded, rows, self._values(version.plan, {})

    def _register(self, range: PositionRange, reached: FlowProgress) -> dict[str, Any]:
        """Register the events of the range as the streams' relations; returns the parameters of
        the SQL.
        """
        for feed, part in zip(self.feeds, self.flow.ranges(range), strict=True):
            events = feed.events(self.spark, part)
            events = with_new(events, True) if self.flow.joined else events
            events.createOrReplaceTempView(f"`{feed.stream.name}`")
        nothing = (None,) * len(self.feeds)
        return watermark_parameters(nothing, reached.marks) if self.flow.joined else {}

    def _values(self, plan: ViewPlan, given: dict[str, Any]) -> dict[str, pa.Table]:
        """The distinct values behind each exact distinct count."""
        return {
            partial.columns[0]: self.spark.sql(plan.values_sql(partial), args=given).toArrow()
            for partial in plan.counted
        }

    def _audit(self, build: StagedBuild, group: int, boundary: Position) -> AuditResult:
        state = self.store.stream(self.flow.name)
        shed = [
            s.events for s in self.store.shed_epochs(self.flow.name) if s.range.upper <= boundary
        ]
        note = ""
        if not boundary <= state.position:
            note = "speed had not reached the boundary"
        elif shed:
            # Speed's answer was a sample and marked as one, so a difference is not a defect.
            note = f"sampled: speed had shed {sum(shed):,} of these events"
        return self.store.audit_staged(build, group, note)


def _watermarks(before: FlowProgress | None, reached: FlowProgress) -> tuple[Marks, int | None]:
    """The watermark at the end of a build's events, and that of the states before them."""
    return [(0, reached.marks[0])], before.marks[0] if before else None
