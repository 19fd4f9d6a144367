"""What the layers ask of a store. SQLite implements it here; another database may implement it too.

All writes of one call happen in one transaction, and each is refused with `Fenced` once a newer
process has become the writer. Readers see whole transactions only: the old answer or the new one,
never a mix. tests/serving/test_store.py states the protocol and runs on every implementation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from headrace.compile.flow import FlowPlan
from headrace.compile.plan import Plan, ViewPlan
from headrace.core.position import Position, PositionRange

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a view: `building` until its first generation, then `live`."""

    plan: ViewPlan
    state: str
    since: Position  # speed rows of this version begin here

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
    position: Position  # speed has committed up to here
    boundary: Position  # batch answers up to here
    generation: int
    highs: tuple[int | None, ...]  # highest event time in each partition, in microseconds
    committed_at: int | None  # when the newest epoch was committed
    promoted_at: int | None

    @property
    def watermark(self) -> int | None:
        """The slowest stream's; None while a stream has none."""
        marks = self.plan.watermarks(self.highs)
        known = [mark for mark in marks if mark is not None]
        return min(known) if len(known) == len(marks) else None


@dataclass(frozen=True, slots=True)
class Epoch:
    """One micro-batch to commit: where it lies, what it held, and its partials by view version."""

    stream: str
    range: PositionRange
    highs: tuple[int | None, ...]
    counts: dict[str, int]  # events, late, duplicates, dead letters
    rows: dict[str, Sequence[Row]]  # version id -> rows of key and lifted columns
    started_at: int
    # Version id -> rows of its answer that are no longer true, until batch has counted again.
    provisional: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Staged:
    """A build's result for one version, ready to be promoted."""

    version: Version
    full: bool
    rows: int


@dataclass(frozen=True, slots=True)
class AuditResult:
    """What a comparison found."""

    view: str
    compared: int
    differences: int
    examples: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """What applying a plan does to one name."""

    name: str
    what: str  # new, rebuild, reread, removed, unchanged
    detail: str = field(default="")


class Store(Protocol):
    path: Path  # where the store is, for readers in other processes

    def take_over(self) -> None:
        """Become the writer; an earlier writer is fenced from now on."""

    def deploy(self, plan: Plan) -> list[Change]:
        """Make the plan the deployed one. Changed views begin as `building` beside the old
        version.
        """

    def deployed(self) -> Plan | None: ...

    def stream(self, name: str) -> StreamState: ...

    def note_table(self, name: str, version: str) -> None:
        """The content of a table that is in use from now on."""

    def tables(self) -> dict[str, tuple[str, int]]:
        """The version of each table and when it was loaded."""

    def versions(self, stream: str) -> list[Version]: ...

    def commit_epoch(self, epoch: Epoch) -> bool:
        """Add an epoch; False (and nothing done) when its positions were committed before."""

    def close_group(self, stream: str) -> None: ...

    def closed_groups(self, stream: str) -> list[tuple[int, Position]]: ...

    def stage(
        self, version: Version, full: bool, rows: Sequence[Row], values: Sequence[Row]
    ) -> Staged: ...

    def audit_staged(self, staged: Staged, group: int) -> AuditResult:
        """Compare a staged build with what speed served for the same positions."""

    def promote(
        self,
        stream: str,
        boundary: Position,
        group: int,
        staged: Sequence[Staged],
        audits: Sequence[AuditResult],
        highs: Sequence[int | None],
    ) -> int:
        """Make staged builds the generation, drop speed's rows up to `group`; the new number."""
