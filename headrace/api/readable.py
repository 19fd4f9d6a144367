"""Alerts, without what a caller may not read. tests/api/test_named.py checks it."""

from __future__ import annotations

from msgspec.structs import replace

from headrace.access.caller import Caller
from headrace.access.object import object_of
from headrace.access.operation import Operation
from headrace.api.read_access import may_read_all, readable
from headrace.api.resources.rules import RulesRequest
from headrace.api.resources.watches import WatchesRequest
from headrace.api.service import Service
from headrace.serving.alerts import AlertFilter, Alerts


def readable_alerts(service: Service, wanted: AlertFilter, caller: Caller) -> Alerts:
    """Alerts of the rules and watches that the caller may read, of one of them or of all."""
    if wanted.rule is not None:
        caller.check(Operation.READ, object_of("rule", wanted.rule))
    if wanted.rule is not None or may_read_all(caller):
        return service.rule_service.alerts(wanted)
    rules = readable("rule", service.ask(RulesRequest()).rules, caller)
    watches = readable("rule", service.ask(WatchesRequest()).watches, caller)
    names = dict.fromkeys([rule.name for rule in rules] + [watch.name for watch in watches])
    return service.rule_service.alerts(replace(wanted, among=tuple(names)))
