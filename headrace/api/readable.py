"""Lists, cut down to what a caller may read. tests/api/test_named.py checks them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from msgspec.structs import replace

from headrace.access.caller import Caller
from headrace.access.object import object_of
from headrace.access.operation import Operation
from headrace.api.service import Service
from headrace.api.shapes import StatusReport
from headrace.serving.ledger import Alert, Wanted


class Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)


def readable(kind: str, found: Iterable[T], caller: Caller) -> list[T]:
    """Those of a kind that the caller may read."""
    return [each for each in found if reads(caller, kind, each.name)]


def reads(caller: Caller, kind: str, name: str) -> bool:
    return caller.allows(Operation.READ, object_of(kind, name))


def reads_all(caller: Caller) -> bool:
    return caller.allows(Operation.READ, caller.whole_job)


def readable_status(status: StatusReport, caller: Caller) -> StatusReport:
    """The status of what the caller may read. The reason may name anything."""
    if reads_all(caller):
        return status
    return replace(
        status,
        reason="",
        streams=readable("stream", status.streams, caller),
        views=readable("view", status.views, caller),
        sinks=[sink for sink in status.sinks if reads(caller, "view", sink.view)],
        tables=readable("table", status.tables, caller),
        rules=readable("rule", status.rules, caller),
    )


def readable_alerts(service: Service, wanted: Wanted, caller: Caller) -> list[Alert]:
    """The newest alerts of the rules that the caller may read, of one rule or of all."""
    if wanted.rule is not None:
        caller.check(Operation.READ, object_of("rule", wanted.rule))
    if wanted.rule is not None or reads_all(caller):
        return service.rulebook.alerts(wanted)
    rules = readable("rule", service.rulebook.rules(), caller)
    watches = readable("rule", service.watchbook.watches(), caller)
    found = [
        alert
        for name in dict.fromkeys([rule.name for rule in rules] + [watch.name for watch in watches])
        for alert in service.rulebook.alerts(replace(wanted, rule=name))
    ]
    newest_first = sorted(found, key=lambda alert: alert.raised_at, reverse=True)
    return newest_first[: wanted.limit]
