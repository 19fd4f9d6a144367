"""Rows of a view: their values, the lateness of their events, the events behind one, its history.

The response types are in headrace/serving and headrace/audit/trace.py.
"""

from __future__ import annotations

from typing import Annotated, Generic

import msgspec

from headrace.access.caller import Caller
from headrace.access.object import object_of
from headrace.access.operation import Operation
from headrace.api import needs
from headrace.api.get_request import A, Endpoint, GetRequest, RequestHandler
from headrace.api.parameter import Limit
from headrace.audit.trace import LISTED, Replay, Why
from headrace.serving.answer import Answer
from headrace.serving.conditions import Keys
from headrace.serving.late import LateAnswer

_LIMIT = "maximum number of rows"
_LISTED = "maximum number of events or steps in the list; all are counted"
_SINCE, _UNTIL = "time at or after which windows start", "time before which windows start"
_WINDOW = "time at which the row's window starts"


class RowsRequest(GetRequest[A], Generic[A], frozen=True):
    """A request about the rows of a view with these key values."""

    view: Annotated[str, "name of a view"]
    keys: Annotated[dict[str, str], "any key column and its value"] = msgspec.field(
        default_factory=dict
    )
    null: Annotated[str | None, "key columns that must be null, comma-separated"] = None

    @property
    def key_values(self) -> Keys:
        """All key values; None is null."""
        nulls = filter(None, (self.null or "").split(","))
        return {**self.keys, **dict.fromkeys(nulls)}


class ViewRequest(RowsRequest[Answer], frozen=True):
    """The rows of a view, by key values and window range."""

    endpoint = Endpoint("/v1/views/{view}", "read_view", needs.reads("view"), stored=True)
    since: Annotated[str | None, _SINCE] = msgspec.field(name="from", default=None)
    until: Annotated[str | None, _UNTIL] = msgspec.field(name="to", default=None)
    order: Annotated[str | None, "columns, comma-separated; -name: largest first"] = None
    limit: Annotated[Limit | None, _LIMIT] = None


class LateRequest(RowsRequest[LateAnswer], frozen=True):
    """The lateness of the events of each window, and the generation that absorbed them."""

    endpoint = Endpoint("/v1/views/{view}/late", "late", needs.reads("view"), stored=True)
    since: Annotated[str | None, _SINCE] = msgspec.field(name="from", default=None)
    until: Annotated[str | None, _UNTIL] = msgspec.field(name="to", default=None)
    limit: Annotated[Limit | None, _LIMIT] = None


class WhyRequest(RowsRequest[Why], frozen=True):
    """The events behind one row of a view, and those left out, with the reason."""

    endpoint = Endpoint("/v1/views/{view}/why", "why", needs.reads("view"), slow=True)
    window: Annotated[str | None, _WINDOW] = None
    limit: Annotated[Limit, _LISTED] = LISTED

    def readable(self, service: RequestHandler, caller: Caller) -> Why:
        """Whole events reveal more than the view does, so each stream is checked too."""
        found = service.ask(self)
        for stream in {event.stream for event in found.listed} | set(found.as_of):
            caller.check(Operation.READ, object_of("stream", stream), "the events behind it")
        return found


class ReplayRequest(RowsRequest[Replay], frozen=True):
    """The history of one row of a view, epoch by epoch and generation by generation."""

    endpoint = Endpoint("/v1/views/{view}/replay", "replay", needs.reads("view"), slow=True)
    window: Annotated[str | None, _WINDOW] = None
    limit: Annotated[Limit, _LISTED] = LISTED
