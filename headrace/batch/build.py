"""A build: the events of a position range in the master -> partials, staged in the store.

Full builds read [0, boundary), incremental ones [old boundary, boundary); the store merges these,
by the same merge that joins batch and speed. The boundary is a position that speed has cut a
group at, or that speed has not reached while it does not run. tests/laws/test_seam.py checks
builds against the reference at every boundary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headrace.compile.plan import CarryPlan, StreamPlan, ViewPlan
from headrace.core.event import OFFSET, PARTITION
from headrace.core.failpoint import failpoint
from headrace.core.position import Position, PositionRange
from headrace.define.processors import NO_PROCESSORS, ProcessorDefinition
from headrace.master.table import MasterTable, event_files
from headrace.serving.store import AuditResult, Row, Staged, Store, Version, watermark_of
from headrace.spark.carry import Carrying
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
    """Builds the views of one stream from its master. `spark` is a session with its tables
    registered.
    """

    def __init__(
        self,
        spark: Any,
        stream: StreamPlan,
        table: MasterTable,
        store: Store,
        processors: Mapping[str, ProcessorDefinition] = NO_PROCESSORS,
    ) -> None:
        self.spark, self.stream, self.table, self.store = spark, stream, table, store
        self.processors = processors

    def build(self, *, speed_runs: bool, full: frozenset[str] = frozenset()) -> Promoted | None:
        """Build all views to the newest possible boundary and promote them; None if there is no
        news.

        Views named in `full` are rebuilt from the beginning.
        """
        boundary, group = self._boundary(speed_runs)
        state = self.store.stream(self.stream.name)
        versions = [v for v in self.store.versions(self.stream.name) if v.since <= boundary]
        # A version that is about to be replaced needs no build any more.
        replaced = {v.name for v in versions if v.state == "building"}
        versions = [v for v in versions if v.state == "building" or v.name not in replaced]
        waiting = [v for v in versions if v.state == "building" or v.name in full]
        if boundary == state.boundary and not waiting:
            return None
        staged = []
        for version in versions if boundary != state.boundary else waiting:
            whole = version in waiting
            lower = Position.start(self.stream.partitions) if whole else state.boundary
            staged.append(self._stage(version, PositionRange(lower, boundary), whole))
        failpoint("generation.staged")
        audits = tuple(self._audit(build, group, boundary) for build in staged)
        highs = self.table.highs()
        number = self.store.promote(self.stream.name, boundary, group, staged, audits, highs)
        return Promoted(self.stream.name, number, boundary, boundary - state.boundary, audits)

    def _boundary(self, speed_runs: bool) -> tuple[Position, int]:
        """Where to cut, and the last group before the cut."""
        archived = self.table.position()
        state = self.store.stream(self.stream.name)
        if not speed_runs:
            self.store.close_group(self.stream.name)
        groups = self.store.closed_groups(self.stream.name)
        if not speed_runs and state.position <= archived:
            return archived, max((number for number, _ in groups), default=0)
        usable = [(upper, number) for number, upper in groups if upper <= archived]
        newest = max(usable, key=lambda pair: pair[1], default=(state.boundary, 0))
        return newest if state.boundary <= newest[0] else (state.boundary, 0)

    def _stage(self, version: Version, range: PositionRange, full: bool) -> Staged:
        events = read_master(self.spark, self.table, range)
        events.createOrReplaceTempView(f"`{self.stream.name}`")
        if carry := version.plan.carry:
            return self._stage_carried(version, carry, range, full)
        rows = rows_of(self.spark.sql(version.plan.partial_sql))
        return self.store.stage(version, full, rows, self._values(version.plan))

    def _stage_carried(
        self, version: Version, carry: CarryPlan, range: PositionRange, full: bool
    ) -> Staged:
        """Fold the range onto the states at the old boundary, or all events if one of these comes
        before, in the order, what those states have taken.
        """
        due_us = watermark_of(self.stream, self._highs_at(range.upper))
        carrying = Carrying(self.spark, carry, self.processors, marks=[(0, due_us)])
        keys = [] if full else carrying.keys()
        states = [] if full else self.store.states(version, keys, due_us, at_boundary=True)
        folded = carrying.fold(states)
        try:
            if folded.disordered:
                start = Position.start(self.stream.partitions)
                return self._stage(version, PositionRange(start, range.upper), True)
            rows = [row[1:] for row in rows_of(self.spark.sql(version.plan.partial_sql))]
            values = self._values(version.plan)
            return self.store.stage(version, full, rows, values, folded.states)
        finally:
            folded.drop()

    def _highs_at(self, boundary: Position) -> tuple[int | None, ...]:
        groups = {group.upper: group.highs for group in self.store.groups(self.stream.name)}
        return groups.get(boundary) or self.table.highs()

    def _values(self, plan: ViewPlan) -> list[Row]:
        """The distinct values behind each exact distinct count."""
        found: list[Row] = []
        keys = "".join(f"{key.column}, " for key in plan.keys)
        for partial in plan.counted:
            sql = (
                f"SELECT DISTINCT '{partial.columns[0]}' AS c, {keys}{partial.counted} AS v "
                f"FROM ({plan.map_sql}) AS mapped WHERE ({partial.counted}) IS NOT NULL"
            )
            found += rows_of(self.spark.sql(sql))
        return found

    def _audit(self, build: Staged, group: int, boundary: Position) -> AuditResult:
        state = self.store.stream(self.stream.name)
        if not boundary <= state.position:
            return AuditResult(
                build.version.name, build.rows, 0, note="speed had not come this far"
            )
        shed = [s.events for s in self.store.shed(self.stream.name) if s.range.upper <= boundary]
        if shed:
            # What speed served was a sample, and said so: a difference would be no defect.
            note = f"sampled: speed had passed over {sum(shed):,} of these events"
            return AuditResult(build.version.name, build.rows, 0, note=note)
        return self.store.audit_staged(build, group)


def read_master(spark: Any, table: MasterTable, range: PositionRange) -> Any:
    """The events of a range, as Spark reads them from the master's files."""
    from pyspark.sql.pandas.types import from_arrow_schema

    paths = event_files(table.files(), range)
    schema = from_arrow_schema(table.schema)
    if not paths:
        return spark.createDataFrame([], schema)
    frame = spark.read.schema(schema).parquet(*paths)
    conditions = [
        f"({PARTITION} = {partition} "
        f"AND {OFFSET} >= {interval.lower} AND {OFFSET} < {interval.upper})"
        for partition, interval in range.intervals()
    ]
    return frame.where(" OR ".join(conditions))
