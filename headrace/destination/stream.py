"""STREAM name: each pane is an event of a stream of the project, and each alert.

Its id is that of the pane or the alert, so one that is sent again is a duplicate to the intake, and
counts once; the correction of an alert has an id of its own. The row's columns come by their names,
a window as two, and beside them what is said of the pane or the alert. A message whose id belongs
to another event is not delivered: the intake has refused it. tests/destination/test_stream.py
checks each.
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
_ABOUT = ("id", "rule", "severity", "event_time", "raised_at", "raised_by")
Event = dict[str, Any]


class StreamDestination(AnyDestination, frozen=True):
    word = "STREAM"
    usage = "STREAM name"
    accepts_panes = feeds = True

    id: str | None = None  # the field that tells duplicates, if what is sent has an id

    @classmethod
    def read(cls, tokens: TokenCursor) -> Self:
        return cls(tokens.name("the stream"))

    def resolved(self, streams: Mapping[str, str | None], sender: Sender) -> Self:
        name = next((name for name in streams if name.lower() == self.target.lower()), None)
        if name is None:
            raise UnknownName(
                f"{sender.said} {sender.verb} stream '{self.target}', which takes no events",
                hint=f"there are: {', '.join(streams)}.",
                origin=sender.origin,
            )
        id = streams[name] if sender.needs_id else None
        if sender.needs_id and id is None:
            raise Unsupported(
                f"{sender.said} {sender.verb} stream '{name}', which has no id",
                hint="give the stream WITH (id = '…'), by which it knows what is sent again; a "
                "sink can do without if its guarantee is 'at_least_once'.",
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
        found = [pair for message in messages for pair in _events(message)]
        events = [{**event, id: key} if id else event for key, event in found]
        receipt = self.submit(stream, [msgspec.json.encode(event) for event in events])
        if conflicts := receipt.result(SUBMIT_S_MAX).conflicts:
            raise Conflict(
                f"stream '{stream}' has other events with the ids of {conflicts} panes",
                hint="they are sent again with new ids.",
            )


def _events(message: Message) -> Iterator[tuple[str, Event]]:
    """The events of a message, with their ids: a pane is one, a notification one for each alert."""
    said = message.document
    if "alerts" not in said:
        yield message.key, _pane(said)
        return
    kind = said["kind"]
    if kind == ENDED:
        yield message.key, _ended(said)
    for alert in said["alerts"]:
        id = f"{alert['id']}:{kind}" if kind == WITHDRAWN else alert["id"]
        about = {f"alert_{name}": alert[name] for name in _ABOUT}
        yield id, {**_flat(alert["body"]), **about, "alert_kind": kind}


def _pane(pane: Event) -> Event:
    said = {f"pane_{name}": pane[name] for name in ("op", "timing", "last", "sequence")}
    return {**said, "pane_index": pane["pane"], **_flat(pane["row"])}


def _ended(said: Event) -> Event:
    """A watch ends with an event that has no row."""
    at = said["ended_at"]
    about = (said["key"], said["rule"], said["severity"], at, at, "watch")
    named = {f"alert_{name}": value for name, value in zip(_ABOUT, about, strict=True)}
    return {**named, "alert_kind": ENDED, "alert_why": said["why"]}


def _flat(row: Event) -> Event:
    """Windows as two columns, because a stream has plain ones."""
    flat: Event = {}
    for name, value in row.items():
        if isinstance(value, dict) and value.keys() == {"start", "end"}:
            flat |= {f"{name}_start": value["start"], f"{name}_end": value["end"]}
        else:
            flat[name] = value
    return flat
