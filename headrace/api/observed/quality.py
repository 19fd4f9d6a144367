"""How good the events of each stream are: late, doubled, unreadable, and unlike what was declared.

Totals are of all records, archived or not, and say of how many they are; reasons are of the newest
dead letters, and the rest is of the newest `sampled` records.
"""

from __future__ import annotations

import msgspec

from headrace.api.observed.balance import BalanceReport


class LatenessBucket(msgspec.Struct, frozen=True):
    """Events that were late by at most so much, and by more than the bucket before says."""

    up_to_ms: int | None  # 0: on time; None: without end
    events: int


class ReasonCount(msgspec.Struct, frozen=True):
    """Dead letters with one reason; values are taken out of it, so that like ones are counted
    together."""

    reason: str
    events: int
    newest_at: str
    partition: int
    offset: int


class UndeclaredField(msgspec.Struct, frozen=True):
    """A field of raw events that no column declares."""

    name: str
    events: int
    share: float
    type: str  # as JSON calls it: string, number, boolean, array, object, null
    example: str


class NullShare(msgspec.Struct, frozen=True):
    """How many of the newest events have no value in a column."""

    column: str
    nulls: int
    share: float
    nullable: bool


class StreamQuality(msgspec.Struct, frozen=True):
    name: str
    sampled: int
    lateness: list[LatenessBucket]
    late: int
    taken: int  # records that speed has taken; `late` is of these
    records: int  # in the log and in the master; `duplicates` and `dead_letters` are of these
    duplicates: int
    dead_letters: int
    reasons: list[ReasonCount]
    undeclared: list[UndeclaredField]
    nulls: list[NullShare]
    balance: BalanceReport


class Quality(msgspec.Struct, frozen=True):
    at: str
    streams: list[StreamQuality]
