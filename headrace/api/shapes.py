"""Request and response types that are not types of another room.

Each response is an object, never a bare array or value, so that a field can be added later.
tests/api/test_openapi.py checks that each of them is described in the OpenAPI document.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from headrace.api.parameter import Limit
from headrace.api.rule_service import MuteStatus
from headrace.ingest.intake import Receipt
from headrace.serving.store import AuditResult

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
