"""Events of a stream as they were sent, found by their fields or by their position in the log."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec.structs import replace

from headrace.access.caller import Caller
from headrace.api import needs
from headrace.api.get_request import Endpoint, GetRequest, RequestHandler
from headrace.api.read_access import may_read
from headrace.core.errors import BadRequest
from headrace.serving.alerts import Alert

EVENTS_LISTED, EVENTS_LIMIT_MAX = 100, 1_000
RecordStatus = Literal["event", "duplicate", "dead_letter"]
EventLimit = Annotated[int, msgspec.Meta(ge=1, le=EVENTS_LIMIT_MAX)]
NonNegative = Annotated[int, msgspec.Meta(ge=0)]


class EventRecord(msgspec.Struct, frozen=True):
    """One record of a stream's log. `late` is null if it is not known, because too much of the log
    is not archived yet."""

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
    raw: str  # as received; bytes that are not text are escaped
    cut: bool = False  # too long for a list: `raw` is truncated, and `body` is left out


class EventPage(msgspec.Struct, frozen=True):
    """The newest first."""

    events: list[EventRecord]
    next: str | None  # cursor: the value of `before` for the next page; null at the end
    scanned: int  # records that were read
    total: int  # records of the requested partitions


class CommitRecord(msgspec.Struct, frozen=True):
    """An epoch or a generation, and when it was committed."""

    number: int
    committed_at: str


class AffectedRow(msgspec.Struct, frozen=True):
    """A row of a view that includes the event; or, without a key, why rows are not listed."""

    view: str
    key: dict[str, Any] | None
    row: dict[str, Any] | None  # the current row; null if it is not in the answer
    reason: str | None = None


class EventTrace(msgspec.Struct, frozen=True):
    """One event, and where it was processed."""

    event: EventRecord
    epoch: CommitRecord | None  # None: not processed by speed, or too long ago
    archived: bool
    generation: CommitRecord | None  # the first known one whose boundary is after the event
    views: list[AffectedRow]
    alerts: list[Alert]


class EventsRequest(GetRequest[EventPage], frozen=True):
    """The newest events of a stream, optionally filtered."""

    endpoint = Endpoint(
        "/v1/streams/{stream}/events", "events", needs.reads("stream"), slow=True, stored=True,
        unknown="events have no parameter '{name}'",
    )  # fmt: skip
    stream: Annotated[str, "name of a stream"]
    limit: Annotated[EventLimit, f"1 to {EVENTS_LIMIT_MAX}; {EVENTS_LISTED} if not given"] = (
        EVENTS_LISTED
    )
    before: Annotated[str | None, "only events before this position, such as 120,98"] = None
    partition: Annotated[NonNegative | None, "only events of this partition"] = None
    offset: Annotated[NonNegative | None, "only the event at this offset of the partition"] = None
    id: Annotated[str | None, "only events with this id"] = None
    key: Annotated[str | None, "only events with this key"] = None
    since: Annotated[str | None, "only events with this event time or later"] = msgspec.field(
        name="from", default=None
    )
    until: Annotated[str | None, "only events with an earlier event time"] = msgspec.field(
        name="to", default=None
    )
    fields: Annotated[list[str], "only events with this field, as name:value; may be repeated"] = (
        msgspec.field(name="field", default_factory=list)
    )
    status: Annotated[RecordStatus | None, "only records with this status"] = None

    def __post_init__(self) -> None:
        if self.offset is not None and self.partition is None:
            raise BadRequest(
                "the parameter offset requires partition", hint="?partition=0&offset=12"
            )
        for text in self.fields:
            if text.find(":") < 1:
                raise BadRequest(
                    f"expected field=name:value, got '{text[:40]}'", hint="?field=user:ada"
                )

    @property
    def values(self) -> list[tuple[str, str]]:
        """The names and values of the field conditions."""
        parts = (text.partition(":") for text in self.fields)
        return [(name, value) for name, _, value in parts]


class EventRequest(GetRequest[EventTrace], frozen=True):
    """One event, and where it was processed."""

    endpoint = Endpoint(
        "/v1/streams/{stream}/events/{partition}/{offset}", "event", needs.reads("stream"),
        slow=True,
    )  # fmt: skip
    stream: Annotated[str, "name of a stream"]
    partition: Annotated[NonNegative, "partition of the event"]
    offset: Annotated[NonNegative, "offset of the event"]

    def readable(self, service: RequestHandler, caller: Caller) -> EventTrace:
        """Rows and alerts are left out if the caller may not read their view or rule."""
        trace = service.ask(self)
        views = [counted for counted in trace.views if may_read(caller, "view", counted.view)]
        alerts = [alert for alert in trace.alerts if may_read(caller, "rule", alert.rule)]
        return replace(trace, views=views, alerts=alerts)
