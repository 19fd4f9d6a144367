"""Request and response types that are not types of another room.

Each response is an object, never a bare array or value, so that a field can be added later.
tests/api/test_openapi.py checks that each of them is described in the OpenAPI document.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from headrace.api.parameter import Limit
from headrace.api.resources.balance import BalanceReport
from headrace.api.rule_service import MuteStatus, RuleStatus
from headrace.api.service import (
    IdlePartition,
    ProjectStatus,
    SinkStatus,
    TableStatus,
    ViewStatus,
)
from headrace.core.msgspec_types import prepare_types
from headrace.core.problems import Level
from headrace.ingest.intake import Receipt
from headrace.serving.store import AuditResult
from headrace.serving.watches import WatchCounts

QueryId = Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.-]+$")]


class Offsets(msgspec.Struct, frozen=True):
    """Offsets of events in one partition of the log: [first_offset, next_offset)."""

    partition: int
    first_offset: int
    next_offset: int


class SendReceipt(msgspec.Struct, frozen=True):
    """The events of one request that the log accepted; all of them are durable."""

    accepted: int
    duplicates: int
    conflicts: int
    offsets: list[Offsets]

    @staticmethod
    def of(receipt: Receipt) -> SendReceipt:
        spans = [Offsets(*span) for span in receipt.offsets]
        return SendReceipt(receipt.accepted, receipt.duplicates, receipt.conflicts, spans)

    def receipt(self) -> Receipt:
        spans = tuple((o.partition, o.first_offset, o.next_offset) for o in self.offsets)
        return Receipt(self.accepted, self.duplicates, self.conflicts, spans)


class SqlRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An ad-hoc query, and its maximum number of rows. The id is for cancelling it."""

    sql: str
    limit: Limit | None = None
    id: QueryId | None = None


class PlanRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A query whose plan is requested."""

    sql: str


class AuditRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The view to audit; all views by default."""

    view: str | None = None


class AuditResults(msgspec.Struct, frozen=True):
    """The result of each audit."""

    audits: list[AuditResult]


class Liveness(msgspec.Struct, frozen=True):
    """The process responds."""

    ok: bool


class Readiness(msgspec.Struct, frozen=True):
    """Queries can be answered."""

    ok: bool
    reason: str


class RuleText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One or more CREATE RULE statements."""

    sql: str


class WatchText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One or more CREATE WATCH statements."""

    sql: str


class MuteRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The duration of a mute, and its key values; all by default."""

    length: str = msgspec.field(name="for")
    keys: dict[str, str] = {}


class UnmuteRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The key values to unmute; all by default."""

    keys: dict[str, str] = {}


class Mutes(msgspec.Struct, frozen=True):
    """Mutes that have ended."""

    mutes: list[MuteStatus]


class RetryRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The alert, rule or watch whose failed notifications are retried; all by default."""

    alert: str | None = None
    rule: str | None = None


class RetryResult(msgspec.Struct, frozen=True):
    """The number of notifications that are retried."""

    notifications: int


class Acknowledgement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The note of an acknowledgement."""

    note: str | None = None


class StreamReport(msgspec.Struct, frozen=True):
    """The status of one stream. Positions are one offset per partition."""

    name: str
    source: str
    end: list[int]
    position: list[int]
    archived: list[int]
    boundary: list[int]
    generation: int
    lag_events: int
    late: int
    watermark: str | None
    balance: BalanceReport
    last_epoch_ms: int | None = None
    problem: str | None = None
    watermark_gap_ms: int | None = None
    watermark_held_by: int | None = None
    idle: list[IdlePartition] = []
    shed: int = 0
    age_ms: int | None = None
    trigger_ms: int | None = None


class ProblemReport(msgspec.Struct, frozen=True):
    """A problem: `about` is the id of a node of the topology, or a component of the run."""

    about: str
    kind: str  # of the subject: source, flow, table, view, rule, action, sink, part …
    name: str  # of the subject
    what: str  # the part of the subject that fails
    message: str
    level: Level
    since: str | None


class StatusReport(msgspec.Struct, frozen=True):
    """The status of the project: ProjectStatus with computed fields."""

    name: str
    state: str
    reason: str
    started_at: str | None
    url: str | None
    streams: list[StreamReport]
    views: list[ViewStatus]
    sinks: list[SinkStatus] = []
    tables: list[TableStatus] = []
    rules: list[RuleStatus] = []
    watches: WatchCounts | None = None
    problems: list[ProblemReport] = []

    @staticmethod
    def of(status: ProjectStatus) -> StatusReport:
        # By attributes, so that `Balance.off`, a property, becomes a field.
        return msgspec.convert(status, StatusReport, from_attributes=True)


prepare_types(StatusReport)
