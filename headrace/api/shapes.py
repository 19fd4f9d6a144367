"""The JSON that goes over the wire where it is not a noun of another room.

Each answer is an object, never a bare array or value, so that a field can be added later.
tests/api/test_openapi.py checks that each of them is described in the OpenAPI document.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from headrace.api.observed.balance import BalanceReport
from headrace.api.rulebook import Muted, RuleStatus
from headrace.api.service import (
    IdlePartition,
    Problem,
    SinkStatus,
    Status,
    TableStatus,
    ViewStatus,
)
from headrace.core.learned import learn
from headrace.ingest.intake import Receipt
from headrace.serving.rules import RuleVersion
from headrace.serving.store import AuditResult
from headrace.serving.watches import WatchNumbers, WatchStatus

LIMIT_MAX = 10_000
Limit = Annotated[int, msgspec.Meta(ge=1, le=LIMIT_MAX)]
QueryId = Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.-]+$")]


class Offsets(msgspec.Struct, frozen=True):
    """Where events lie in one partition of the log: [first_offset, next_offset)."""

    partition: int
    first_offset: int
    next_offset: int


class Accepted(msgspec.Struct, frozen=True):
    """What the log took of one request; all of it is durable."""

    accepted: int
    duplicates: int
    conflicts: int
    offsets: list[Offsets]

    @staticmethod
    def of(receipt: Receipt) -> Accepted:
        spans = [Offsets(*span) for span in receipt.offsets]
        return Accepted(receipt.accepted, receipt.duplicates, receipt.conflicts, spans)

    def receipt(self) -> Receipt:
        spans = tuple((o.partition, o.first_offset, o.next_offset) for o in self.offsets)
        return Receipt(self.accepted, self.duplicates, self.conflicts, spans)


class SqlQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An ad-hoc query, and the number of rows wanted at most. By its id it can be stopped."""

    sql: str
    limit: Limit | None = None
    id: QueryId | None = None


class PlanQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A query of which it is asked how it would be answered."""

    sql: str


class AuditQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The view to audit; all of them if none is named."""

    view: str | None = None


class Audits(msgspec.Struct, frozen=True):
    """What each comparison found."""

    audits: list[AuditResult]


class Alive(msgspec.Struct, frozen=True):
    """The process lives."""

    ok: bool


class Ready(msgspec.Struct, frozen=True):
    """Questions can be answered."""

    ok: bool
    reason: str


class RuleText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One or more CREATE RULE statements."""

    sql: str


class WatchText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One or more CREATE WATCH statements."""

    sql: str


class Watches(msgspec.Struct, frozen=True):
    """Watches as they are now."""

    watches: list[WatchStatus]


class Rules(msgspec.Struct, frozen=True):
    """Rules as they are now."""

    rules: list[RuleStatus]


class RuleHistory(msgspec.Struct, frozen=True):
    """All versions of a rule, the newest first."""

    versions: list[RuleVersion]


class MuteQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """For how long, and of which values; of all if none are named."""

    length: str = msgspec.field(name="for")
    keys: dict[str, str] = {}


class UnmuteQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of which values; of all if none are named."""

    keys: dict[str, str] = {}


class Mutes(msgspec.Struct, frozen=True):
    """Mutes that have ended."""

    mutes: list[Muted]


class RetryQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whose failed notifications; all if nothing is named."""

    alert: str | None = None
    rule: str | None = None


class Retried(msgspec.Struct, frozen=True):
    """How many notifications are tried again."""

    notifications: int


class Acknowledgement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What somebody says who has seen an alert."""

    note: str | None = None


class StreamReport(msgspec.Struct, frozen=True):
    """How one stream is doing. Positions are one offset a partition."""

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


class StatusReport(msgspec.Struct, frozen=True):
    """How the project is doing: the service's Status, with what is computed from it."""

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
    watches: WatchNumbers | None = None
    problems: list[Problem] = []

    @staticmethod
    def of(status: Status) -> StatusReport:
        # By attributes, so that `Balance.off`, a property, becomes a field.
        return msgspec.convert(status, StatusReport, from_attributes=True)


learn(StatusReport)
