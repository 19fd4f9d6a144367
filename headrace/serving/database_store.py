"""`Store` on a database: each method is one transaction around functions of this package; staging
is a snapshot and a short transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager

import pyarrow as pa

from headrace.compile.plan import Plan
from headrace.core.failpoint import failpoint
from headrace.core.position import Position
from headrace.core.time import Clock, now_us
from headrace.serving import carried, catalog, epochs, generations, progress, rules, staging
from headrace.serving.counted_values import CountedValues
from headrace.serving.database import Database, Transaction
from headrace.serving.shed_epochs import read_shed_epochs
from headrace.serving.store import (
    AuditResult,
    Change,
    Epoch,
    GroupState,
    ShedEpoch,
    StagedBuild,
    StateRow,
    StreamState,
    Version,
)
from headrace.serving.table_rows import write_rows
from headrace.serving.watermark import FlowProgress


class DatabaseStore:
    """The serving store of a project; headrace/serving/opening.py opens it."""

    def __init__(self, db: Database, *, group_us: int, clock: Clock = now_us) -> None:
        self.db = db
        self.group_us, self.clock = group_us, clock

    def read(self) -> AbstractContextManager[Transaction]:
        """A snapshot, for functions that read."""
        return self.db.read()

    def write(self) -> AbstractContextManager[Transaction]:
        """One transaction, for functions that write."""
        return self.db.write()

    def take_over(self) -> None:
        self.db.take_over()
        with self.db.write() as db:
            progress.resume_idle_times(db, self.clock())

    def deploy(self, plan: Plan) -> list[Change]:
        with self.db.write() as db:
            return catalog.deploy(db, plan)

    def deploy_rules(
        self,
        plan: Plan,
        kept: Collection[str],
        who: str,
        since: Mapping[str, Position] | None = None,
    ) -> None:
        """Record the rules of the deployed plan, and which of them are kept in the store."""
        with self.db.write() as db:
            rules.deploy_rules(db, plan, kept, who, self.clock(), since)

    def deployed(self) -> Plan | None:
        with self.db.read() as db:
            return catalog.read_plan(db)

    def stream(self, name: str) -> StreamState:
        with self.db.read() as db:
            return progress.read_stream(db, name)

    def record_table(self, name: str, version: str, rows: pa.Table | None = None) -> None:
        with self.db.write() as db:
            catalog.record_table(db, name, version, self.clock())
            write_rows(db, name, rows)

    def tables(self) -> dict[str, tuple[str, int]]:
        with self.db.read() as db:
            return catalog.read_tables(db)

    def versions(self, stream: str) -> list[Version]:
        with self.db.read() as db:
            return catalog.read_versions(db, stream)

    def commit_epoch(self, epoch: Epoch) -> bool:
        with self.db.write() as db:
            added = epochs.commit_epoch(db, epoch, self.group_us, self.clock())
            failpoint("epoch.committing")
        failpoint("epoch.committed")
        return added

    def shed_epochs(self, stream: str) -> list[ShedEpoch]:
        with self.db.read() as db:
            return list(read_shed_epochs(db, stream, progress.read_stream(db, stream).boundary))

    def close_group(self, stream: str) -> None:
        with self.db.write() as db:
            catalog.close_group(db, stream)

    def close_old_group(self, stream: str) -> None:
        with self.db.write() as db:
            catalog.close_group(db, stream, self.clock() - self.group_us)

    def closed_groups(self, stream: str) -> list[GroupState]:
        with self.db.read() as db:
            return progress.read_groups(db, stream, closed=True)

    def groups(self, stream: str) -> list[GroupState]:
        with self.db.read() as db:
            built = progress.read_stream(db, stream).built
            found = progress.read_groups(db, stream)
            return [group for group in found if not group.reached <= built]

    def states_count(self, version: Version) -> int:
        with self.db.read() as db:
            return carried.count_states(db, version.plan)

    def states(
        self, version: Version, keys: Sequence[str] | None, due_us: int | None, *, at_boundary: bool
    ) -> list[StateRow]:
        with self.db.read() as db:
            return carried.read_states(db, version.plan, keys, due_us, at_boundary=at_boundary)

    def needs_rebase(self, version: Version) -> bool:
        with self.db.read() as db:
            return carried.needs_rebase(db, version.id)

    def stage(
        self,
        version: Version,
        full: bool,
        rows: pa.Table,
        values: Mapping[str, pa.Table],
        after: Sequence[StateRow] = (),
    ) -> StagedBuild:
        given = {name: CountedValues.of(version.plan, some) for name, some in values.items()}
        with self.db.read() as db:
            base = staging.read_base(db, version, given, full=full)
        prepared = staging.prepare(base, rows)
        with self.db.write() as db:
            return staging.write_staged(db, prepared, after)

    def audit_staged(self, staged: StagedBuild, group: int, note: str = "") -> AuditResult:
        with self.db.read() as db:
            return generations.audit_staged(db, staged, group, note)

    def promote(
        self,
        stream: str,
        since: int,
        reached: FlowProgress,
        group: int,
        staged: Sequence[StagedBuild],
        audits: Sequence[AuditResult],
    ) -> int:
        with self.db.write() as db:
            number = generations.promote(
                db, stream, since, reached, group, staged, audits, self.clock()
            )
            failpoint("generation.promoting")
        failpoint("generation.promoted")
        return number

    def close(self) -> None:
        self.db.close()
