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
from headrace.serving.ledger import Alerts, Wanted


class Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)
# What one must be allowed to read, to be told of a place of the graph.
_OBJECTS = dict.fromkeys(("source", "log", "master", "speed"), "stream") | {
    "view": "view", "rule": "rule",
}  # fmt: skip


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
        problems=[one for one in status.problems if _reads_about(caller, one.about)],
    )


def _reads_about(caller: Caller, about: str) -> bool:
    """Whether a problem is of something that the caller may read; else it may name anything."""
    kind, _, name = about.partition(":")
    return kind in _OBJECTS and reads(caller, _OBJECTS[kind], name)


def readable_alerts(service: Service, wanted: Wanted, caller: Caller) -> Alerts:
    """Alerts of the rules and watches that the caller may read, of one of them or of all."""
    if wanted.rule is not None:
        caller.check(Operation.READ, object_of("rule", wanted.rule))
    if wanted.rule is not None or reads_all(caller):
        return service.rulebook.alerts(wanted)
    rules = readable("rule", service.rulebook.rules(), caller)
    watches = readable("rule", service.watchbook.watches(), caller)
    names = dict.fromkeys([rule.name for rule in rules] + [watch.name for watch in watches])
    return service.rulebook.alerts(replace(wanted, among=tuple(names)))
