"""A build: the events of a position range in the master -> partials, staged in the store.

Full builds read [0, boundary), incremental ones [old boundary, boundary); the store merges these,
by the same merge that joins batch and speed. A view over joined streams is always built in full,
since a new event may find its partner anywhere in history. The boundary is a position that speed
has cut a group at, or that speed has not reached while it does not run. tests/laws/test_seam.py
checks builds against the reference at every boundary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headrace.compile.flow import FlowPlan, watermark_of, whole
from headrace.compile.plan import CarryPlan, ViewPlan
from headrace.core.event import PARTITION
from headrace.core.failpoint import failpoint
from headrace.core.position import Position, PositionRange
from headrace.define.processors import NO_PROCESSORS, ProcessorDefinition
from headrace.serving.store import AuditResult, Row, Staged, Store, Version
from headrace.spark.carry import Carrying
from headrace.spark.feed import Feed, high_sql
from headrace.spark.joined import marks, with_new
from headrace.spark.relations import rows_of


@dataclass(frozen=True, slots=True)
class Promoted:
    """A generation that was made."""

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
    ) -> None:
        self.spark, self.flow, self.feeds, self.store = spark, flow, feeds, store
        self.processors = processors

    def build(self, *, speed_runs: bool, full: frozenset[str] = frozenset()) -> Promoted | None:
        """Build all views to the newest possible boundary and promote them; None if there is no
        news.

        Views named in `full` are rebuilt from the beginning.
        """
        boundary, group = self._boundary(speed_runs)
        state = self.store.stream(self.flow.name)
        versions = [v for v in self.store.versions(self.flow.name) if v.since <= boundary]
        # A version that is about to be replaced needs no build any more.
        replaced = {v.name for v in versions if v.state == "building"}
        versions = [v for v in versions if v.state == "building" or v.name not in replaced]
        waiting = [v for v in versions if v.state == "building" or v.name in full]
        if boundary == state.boundary and not waiting:
            return None
        staged = []
        for version in versions if boundary != state.boundary else waiting:
            full_build = version in waiting or self.flow.joined
            lower = Position.start(self.flow.partitions) if full_build else state.boundary
            staged.append(self._stage(version, PositionRange(lower, boundary), full_build))
        failpoint("generation.staged")
        audits = tuple(self._audit(build, group, boundary) for build in staged)
        highs = [high for feed in self.feeds for high in feed.table.highs()]
        number = self.store.promote(self.flow.name, boundary, group, staged, audits, highs)
        return Promoted(self.flow.name, number, boundary, boundary - state.boundary, audits)

    def _boundary(self, speed_runs: bool) -> tuple[Position, int]:
        """Where to cut, and the last group before the cut."""
        archived = whole(feed.table.position() for feed in self.feeds)
        state = self.store.stream(self.flow.name)
        if speed_runs:
            # A stream that has fallen silent is built to its end.
            self.store.close_old_group(self.flow.name)
        else:
            self.store.close_group(self.flow.name)
        groups = self.store.closed_groups(self.flow.name)
        if not speed_runs and state.position <= archived:
            return archived, max((number for number, _ in groups), default=0)
        usable = [(upper, number) for number, upper in groups if upper <= archived]
        newest = max(usable, key=lambda pair: pair[1], default=(state.boundary, 0))
        return newest if state.boundary <= newest[0] else (state.boundary, 0)

    def _stage(self, version: Version, range: PositionRange, full: bool) -> Staged:
        given = self._register(version.plan, range)
        if carry := version.plan.carry:
            return self._stage_carried(version, carry, range, full)
        rows = rows_of(self.spark.sql(version.plan.partial_sql, args=given))
        return self.store.stage(version, full, rows, self._values(version.plan, given))

    def _stage_carried(
        self, version: Version, carry: CarryPlan, range: PositionRange, full: bool
    ) -> Staged:
        """Fold the range onto the states at the old boundary, or all events if one of these comes
        before, in the order, what those states have taken.
        """
        due_us = watermark_of(self.flow.streams[0], self._highs_at(range.upper))
        before = None if full else self.store.stream(self.flow.name).boundary_highs
        since_us = watermark_of(self.flow.streams[0], before or ())
        carrying = Carrying(
            self.spark, carry, self.processors, len(range), marks=[(0, due_us)], since_us=since_us
        )
        states = [] if full else carrying.states(self.store, version, at_boundary=True)
        folded = carrying.fold(states)
        if folded.disordered:
            start = Position.start(self.flow.partitions)
            return self._stage(version, PositionRange(start, range.upper), True)
        rows = [row[1:] for row in rows_of(self.spark.sql(version.plan.partial_sql))]
        values = self._values(version.plan, {})
        return self.store.stage(version, full, rows, values, folded.states)

    def _highs_at(self, boundary: Position) -> tuple[int | None, ...]:
        groups = {group.upper: group.highs for group in self.store.groups(self.flow.name)}
        return groups.get(boundary) or self.feeds[0].table.highs()

    def _register(self, plan: ViewPlan, positions: PositionRange) -> dict[str, Any]:
        """Give the streams' names the events of the range; the SQL's parameters."""
        highs: list[int | None] = []
        for feed, part in zip(self.feeds, self.flow.ranges(positions), strict=True):
            events = feed.archived_events(self.spark, part)
            highs += self._highs(feed, events) if plan.join and plan.join.withdrawn else ()
            events = with_new(events, True) if self.flow.joined else events
            events.createOrReplaceTempView(f"`{feed.stream.name}`")
        nothing = (None,) * self.flow.partitions
        return marks(self.flow, nothing, highs or nothing) if self.flow.joined else {}

    def _highs(self, feed: Feed, events: Any) -> list[int | None]:
        """The highest event times at the end of the range, on which outer rows depend."""
        from pyspark.sql.functions import expr

        found = dict(rows_of(events.groupBy(PARTITION).agg(expr(f"max({high_sql(feed.stream)})"))))
        return [found.get(partition) for partition in range(feed.stream.partitions)]

    def _values(self, plan: ViewPlan, given: dict[str, Any]) -> list[Row]:
        """The distinct values behind each exact distinct count."""
        found: list[Row] = []
        keys = "".join(f"{key.column}, " for key in plan.keys)
        for partial in plan.counted:
            sql = (
                f"SELECT DISTINCT '{partial.columns[0]}' AS c, {keys}{partial.counted} AS v "
                f"FROM ({plan.map_sql}) AS mapped WHERE ({partial.counted}) IS NOT NULL"
            )
            found += rows_of(self.spark.sql(sql, args=given))
        return found

    def _audit(self, build: Staged, group: int, boundary: Position) -> AuditResult:
        state = self.store.stream(self.flow.name)
        if not boundary <= state.position:
            return AuditResult(
                build.version.name, build.rows, 0, note="speed had not come this far"
            )
        shed = [s.events for s in self.store.shed(self.flow.name) if s.range.upper <= boundary]
        if shed:
            # What speed served was a sample, and said so: a difference would be no defect.
            note = f"sampled: speed had passed over {sum(shed):,} of these events"
            return AuditResult(build.version.name, build.rows, 0, note=note)
        return self.store.audit_staged(build, group)
