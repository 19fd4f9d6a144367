"""The protocol of the serving store, used by the layers.

All writes of one call happen in one transaction, and each is refused with `Fenced` once a newer
process has become the writer. Readers see whole transactions only: the old answer or the new one,
never a mix. tests/serving/test_store.py states the protocol and runs on every implementation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import pyarrow as pa

from headrace.compile.flow import FlowPlan
from headrace.compile.plan import Plan, ViewPlan
from headrace.core.position import Position, PositionRange
from headrace.core.shedding import Shedding
from headrace.serving.watermark import EventTime, FlowProgress, Times, event_time

# Key, time and offset of its last event, state, and when its timer fires.
StateRow = tuple[str, int, int, bytes, int | None]


class VersionStatus(StrEnum):
    BUILDING = "building"  # until its first generation
    LIVE = "live"  # it answers


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a view."""

    plan: ViewPlan
    state: VersionStatus
    since: Position  # speed rows of this version begin here

    @property
    def live(self) -> bool:
        return self.state is VersionStatus.LIVE

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def id(self) -> str:
        return self.plan.recompute


@dataclass(frozen=True, slots=True)
class StreamState:
    """How far a stream, or a flow of joined ones, has come in the store."""

    plan: FlowPlan
    reached: FlowProgress  # speed has committed up to here
    built: FlowProgress  # the newest generation contains everything up to here
    generation: int
    received_at: Times  # when speed last received an event of each partition
    committed_at: int | None  # when the newest epoch was committed
    promoted_at: int | None
    shed: int = 0  # events after the boundary that speed has shed

    @property
    def position(self) -> Position:
        return self.reached.position

    @property
    def boundary(self) -> Position:
        return self.built.position

    def after(self, position: Position, highs: Times, at_us: int) -> FlowProgress:
        """The progress after all events up to a position are processed at a time; `highs` are the
        highest event times there.
        """
        times = self._times(highs, self.received(position, at_us), at_us)
        return FlowProgress(position, highs, tuple(time.watermark_us for time in times))

    def received(self, position: Position, at_us: int) -> Times:
        """When each partition last received an event, if all up to a position are processed at a
        time.
        """
        offsets = zip(self.received_at, self.position.offsets, position.offsets, strict=True)
        return tuple(at_us if before < after else at for at, before, after in offsets)

    def due(self, now_us: int) -> bool:
        """Whether a watermark advances because partitions have become idle."""
        return self.after(self.position, self.reached.highs, now_us) != self.reached

    def event_times(self, now_us: int) -> list[EventTime]:
        """Of each stream, its watermark, the partition that holds it back, and the idle ones."""
        return self._times(self.reached.highs, self.received_at, now_us)

    def _times(self, highs: Times, received_at: Times, now_us: int) -> list[EventTime]:
        parts, before = (self.plan.parts(highs), self.plan.parts(received_at)), self.reached.marks
        return [
            event_time(tops, received, mark, now_us, stream.watermark[1], stream.idle_us)
            if stream.watermark
            else EventTime()
            for stream, tops, received, mark in zip(self.plan.streams, *parts, before, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class GroupState:
    """A group of epochs, and the progress at its end."""

    number: int
    reached: FlowProgress


NOW = 2**31 - 1  # newer than every group


@dataclass(frozen=True, slots=True)
class CarriedEpoch:
    """What an epoch adds to a carried view beside its rows. `rebased` says that rows and states
    were computed from the boundary, not from the start of the epoch, and replace those of speed.
    """

    states: Sequence[StateRow]
    rebased: bool = False
    disorder: int | None = None  # the newest group with events out of order, or NOW
    provisional: bool = False  # the rows are not consistent with the generation


@dataclass(frozen=True, slots=True)
class Epoch:
    """One micro-batch to commit: its range, its counts, and its partials by view version. One
    without events only advances the watermark.
    """

    stream: str
    generation: int  # the newest one when it was computed
    lower: Position
    reached: FlowProgress
    counts: dict[str, int]  # events, late, duplicates, dead letters
    rows: dict[str, pa.Table]  # version id -> rows of key and lifted columns
    started_at: int
    # Version id -> states of carried views. The rows of such a version have their group in CUT, or
    # NOW for the group of this epoch.
    carried: dict[str, CarriedEpoch] = field(default_factory=dict)
    # Version id -> how many rows of its answer are wrong until the next generation.
    provisional: dict[str, int] = field(default_factory=dict)
    shedding: Shedding | None = None

    @property
    def range(self) -> PositionRange:
        return PositionRange(self.lower, self.reached.position)

    @property
    def shed(self) -> int:
        """How many events of the range were shed."""
        seen = sum(self.counts[name] for name in ("events", "duplicates", "dead_letters"))
        return len(self.range) - seen if self.shedding else 0


@dataclass(frozen=True, slots=True)
class ShedEpoch:
    """An epoch that has shed events."""

    number: int
    range: PositionRange
    shedding: Shedding
    events: int


@dataclass(frozen=True, slots=True)
class StagedBuild:
    """A build's result for one version, ready to be promoted."""

    version: Version
    full: bool
    rows: int


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The result of a comparison. Expected differences are not counted in `differences`; `note`
    gives their reason, and `changed` counts all rows that differ from what was served. It is None
    if nothing was compared; `note` says why.
    """

    view: str
    compared: int
    differences: int
    examples: tuple[str, ...] = ()
    note: str = ""
    changed: int | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What deploying a plan does to one view."""

    name: str
    what: str  # new, rebuild, reread, removed, unchanged
    detail: str = field(default="")


class Superseded(Exception):
    """The result was computed for a generation that is no longer the newest, or for versions of
    views that are not deployed. Nothing was written; the caller reads the store and computes again.
    """


class Store(Protocol):
    """The serving store of a project."""

    def take_over(self) -> None:
        """Become the writer; an earlier writer is fenced from now on."""

    def deploy(self, plan: Plan) -> list[Change]:
        """Deploy a plan. Changed views start as `building` beside the old version."""

    def deployed(self) -> Plan | None: ...

    def stream(self, name: str) -> StreamState: ...

    def record_table(self, name: str, version: str, rows: pa.Table | None = None) -> None:
        """Record the version of a table that is used from now on, with its rows if known."""

    def tables(self) -> dict[str, tuple[str, int]]:
        """The version of each table and when it was loaded."""

    def versions(self, stream: str) -> list[Version]: ...

    def commit_epoch(self, epoch: Epoch) -> bool:
        """Add an epoch; False (and nothing done) when it was committed before. `Superseded` if a
        generation was promoted since it was started, so that states and groups that it read are
        gone, or a version was deployed for which it has no rows.
        """

    def shed_epochs(self, stream: str) -> list[ShedEpoch]:
        """The epochs after the boundary that have shed events, newest first."""

    def close_group(self, stream: str) -> None: ...

    def close_old_group(self, stream: str) -> None:
        """Close the open group if it is old enough, without waiting for an epoch."""

    def closed_groups(self, stream: str) -> list[GroupState]: ...

    def groups(self, stream: str) -> list[GroupState]:
        """The groups after the boundary, the open one included."""

    def states_count(self, version: Version) -> int:
        """The number of states; a key may count twice."""

    def states(
        self, version: Version, keys: Sequence[str] | None, due_us: int | None, *, at_boundary: bool
    ) -> list[StateRow]:
        """The states of these keys, and of those whose timer is due; without keys, of all."""

    def needs_rebase(self, version: Version) -> bool:
        """Whether speed must compute the rows of a carried version again from the boundary."""

    def stage(
        self,
        version: Version,
        full: bool,
        rows: pa.Table,
        values: Mapping[str, pa.Table],
        after: Sequence[StateRow] = (),
    ) -> StagedBuild:
        """Stage a build's rows, with the values behind exact distinct counts: for each partial
        column the keys and values (`v`). `Superseded` if a generation was promoted meanwhile, or
        the version is not deployed any more.
        """

    def audit_staged(self, staged: StagedBuild, group: int, note: str = "") -> AuditResult:
        """Compare a staged build with speed's answer for the same positions."""

    def promote(
        self,
        stream: str,
        since: int,
        reached: FlowProgress,
        group: int,
        staged: Sequence[StagedBuild],
        audits: Sequence[AuditResult],
    ) -> int:
        """Make staged builds the generation that follows `since`, and drop speed's rows up to
        `group`; the new number. `Superseded` if another build was promoted meanwhile, a staged
        version is not deployed any more, or later groups do not begin where the builds end.
        """
