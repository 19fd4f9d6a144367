"""Events of a stream as they were sent, found by what they say or by their place in the log."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from headrace.serving.ledger import Alert

EVENTS_LISTED, EVENTS_LIMIT_MAX = 100, 1_000
RecordStatus = Literal["event", "duplicate", "dead_letter"]


class EventsWanted(msgspec.Struct, frozen=True):
    """Which events are asked for: all conditions must hold."""

    limit: int = EVENTS_LISTED
    before: str | None = None  # a position such as '120,98'
    partition: int | None = None
    offset: int | None = None
    id: str | None = None
    key: str | None = None
    since: str | None = None  # event time
    until: str | None = None
    fields: list[tuple[str, str]] = []
    status: str | None = None


class EventRecord(msgspec.Struct, frozen=True):
    """One record of a stream's log. `late` is null where it is not known, because too much of the
    log is not yet archived."""

    partition: int
    offset: int
    arrived_at: str
    status: RecordStatus
    reason: str | None  # of a dead letter
    event_time: str | None
    late: bool | None
    lateness_ms: float | None
    id: str | None
    key: str | None
    body: dict[str, Any] | None  # the declared columns of an event that could be read
    raw: str  # as received; bytes that are no text are escaped
    cut: bool = False  # it is too long for a list: `raw` is its beginning, and `body` is left out


class Events(msgspec.Struct, frozen=True):
    """The newest first."""

    events: list[EventRecord]
    next: str | None  # the position to go on before; null when all was looked at
    scanned: int  # records that were looked at


class TakenBy(msgspec.Struct, frozen=True):
    """An epoch or a generation, and when it was committed."""

    number: int
    committed_at: str


class CountedIn(msgspec.Struct, frozen=True):
    """A row of a view in which the event counts; or why that cannot be said, without a key."""

    view: str
    key: dict[str, Any] | None
    row: dict[str, Any] | None  # as it is answered now; null if it is not in the answer
    reason: str | None = None


class EventTrace(msgspec.Struct, frozen=True):
    """One event, and what became of it."""

    event: EventRecord
    epoch: TakenBy | None  # None: speed has not taken it, or it is too long ago
    archived: bool
    generation: TakenBy | None  # the first whose boundary is after it, of those that are kept
    views: list[CountedIn]
    alerts: list[Alert]
