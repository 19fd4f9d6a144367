"""STREAM name: each pane or alert becomes an event of a stream of the project.

The event's id is that of the pane or alert, so the intake recognizes an event that is sent again as
a duplicate; the correction of an alert has an id of its own. The event has the columns of the row,
a window as two columns, and the metadata of the pane or alert. If the id belongs to another event,
the intake rejects the event as a conflict. tests/destination/test_stream.py checks each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import msgspec

from headrace.core.errors import Conflict, UnknownName, Unsupported
from headrace.core.rule import ENDED, WITHDRAWN
from headrace.define.definitions import Sender
from headrace.define.tokens import TokenCursor
from headrace.destination.protocol import (
    AnyDestination,
    DestinationContext,
    DestinationWriter,
    Message,
    Submit,
)

SUBMIT_S_MAX = 60.0
_ALERT_FIELDS = ("id", "rule", "severity", "event_time", "raised_at", "raised_by")
Event = dict[str, Any]


class StreamDestination(AnyDestination, frozen=True):
    word = "STREAM"
    usage = "STREAM name"
    accepts_panes = feeds = True

    id: str | None = None  # the stream's id column, if the sender requires one

    @classmethod
    def read(cls, tokens: TokenCursor) -> Self:
        return cls(tokens.name("the stream"))

    def resolved(self, streams: Mapping[str, str | None], sender: Sender) -> Self:
        name = next((name for name in streams if name.lower() == self.target.lower()), None)
        if name is None:
            raise UnknownName(
                f"{sender.said} {sender.verb} '{self.target}', which is not a declared stream",
                hint=f"available streams: {', '.join(streams)}.",
                origin=sender.origin,
            )
        id = streams[name] if sender.needs_id else None
        if sender.needs_id and id is None:
            raise Unsupported(
                f"{sender.said} {sender.verb} stream '{name}', which has no id",
                hint="give the stream WITH (id = '…'), so that it can recognize duplicates; a sink "
                "with guarantee 'at_least_once' requires no id.",
                origin=sender.origin,
            )
        return type(self)(name, id)

    def connect(self, context: DestinationContext) -> DestinationWriter:
        return StreamWriter(self, context.submit)


class StreamWriter(DestinationWriter):
    batch_max = 1_000

    def __init__(self, destination: StreamDestination, submit: Submit) -> None:
        self.destination, self.submit = destination, submit

    def deliver(self, messages: Sequence[Message]) -> None:
        stream, id = self.destination.target, self.destination.id
        pairs = [pair for message in messages for pair in _events(message)]
        events = [{**event, id: key} if id else event for key, event in pairs]
        receipt = self.submit(stream, [msgspec.json.encode(event) for event in events])
        if conflicts := receipt.result(SUBMIT_S_MAX).conflicts:
            raise Conflict(
                f"stream '{stream}' already has other events with the ids of {conflicts} panes",
                hint="no action is needed: the panes are sent again with new ids.",
            )


def _events(message: Message) -> Iterator[tuple[str, Event]]:
    """The events of a message with their ids: one for a pane, one per alert of a notification."""
    document = message.document
    if "alerts" not in document:
        yield message.key, _pane(document)
        return
    kind = document["kind"]
    if kind == ENDED:
        yield message.key, _ended(document)
    for alert in document["alerts"]:
        id = f"{alert['id']}:{kind}" if kind == WITHDRAWN else alert["id"]
        about = {f"alert_{name}": alert[name] for name in _ALERT_FIELDS}
        yield id, {**_flat(alert["body"]), **about, "alert_kind": kind}


def _pane(pane: Event) -> Event:
    metadata = {f"pane_{name}": pane[name] for name in ("op", "timing", "last", "sequence")}
    return {**metadata, "pane_index": pane["pane"], **_flat(pane["row"])}


def _ended(notification: Event) -> Event:
    """The event for the end of a watch, which has no row."""
    at = notification["ended_at"]
    about = (notification["key"], notification["rule"], notification["severity"], at, at, "watch")
    named = {f"alert_{name}": value for name, value in zip(_ALERT_FIELDS, about, strict=True)}
    return {**named, "alert_kind": ENDED, "alert_why": notification["why"]}


def _flat(row: Event) -> Event:
    """Flatten windows to two columns, because events have no windows."""
    flat: Event = {}
    for name, value in row.items():
        if isinstance(value, dict) and value.keys() == {"start", "end"}:
            flat |= {f"{name}_start": value["start"], f"{name}_end": value["end"]}
        else:
            flat[name] = value
    return flat
