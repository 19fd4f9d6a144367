"""Data quality of each stream: late events, duplicates, dead letters, and undeclared fields.

Totals cover all records, archived or not; reasons cover the newest dead letters, and everything
else the newest `sampled` records.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from headrace.access.caller import Caller
from headrace.api.get_request import Endpoint, GetRequest, RequestHandler
from headrace.api.needs import ANY_USER
from headrace.api.read_access import readable
from headrace.api.resources.balance import Balance


class LatenessBucket(msgspec.Struct, frozen=True):
    """Events that were late by at most `up_to_ms`, and by more than the previous bucket."""

    up_to_ms: int | None  # 0: on time; None: unbounded
    events: int


class ReasonCount(msgspec.Struct, frozen=True):
    """Dead letters with the same reason; values are removed from it, so that similar ones are
    counted together."""

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
    taken: int  # records processed by speed; `late` is a part of these
    records: int  # in the log and the master; `duplicates` and `dead_letters` are a part of these
    duplicates: int
    dead_letters: int
    reasons: list[ReasonCount]
    undeclared: list[UndeclaredField]  # the most common
    undeclared_total: int
    nulls: list[NullShare]
    balance: Balance


class Quality(msgspec.Struct, frozen=True):
    at: str
    streams: list[StreamQuality]


class QualityRequest(GetRequest[Quality], frozen=True):
    """Late events, duplicates, dead letters and undeclared fields of each stream."""

    endpoint = Endpoint("/v1/quality", "quality", ANY_USER, slow=True, stored=True)

    def readable(self, service: RequestHandler, caller: Caller) -> Quality:
        quality = service.ask(self)
        return replace(quality, streams=readable("stream", quality.streams, caller))
