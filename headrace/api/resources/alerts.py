"""Alerts; the response types are in headrace/serving/alerts.py."""

from __future__ import annotations

from typing import Annotated

from msgspec.structs import replace

from headrace.access.caller import Caller
from headrace.access.object import object_of
from headrace.access.operation import Operation
from headrace.api import needs
from headrace.api.get_request import Endpoint, GetRequest, RequestHandler
from headrace.api.parameter import Limit
from headrace.api.read_access import may_read_all
from headrace.api.resources.rules import RulesRequest
from headrace.api.resources.watches import WatchesRequest
from headrace.serving.alerts import LISTED, Alert, Alerts


class AlertsRequest(GetRequest[Alerts], frozen=True):
    """Alerts, the newest first, and the number of alerts of each rule."""

    endpoint = Endpoint(
        "/v1/alerts", "alerts", needs.reads(needs.NAMED), stored=True,
        unknown="alerts have no parameter '{name}'",
    )  # fmt: skip
    rule: Annotated[str | None, "only alerts of this rule"] = None
    state: Annotated[str | None, "only alerts in this state"] = None
    missed: Annotated[bool, "only alerts that only batch has found"] = False
    withdrawn: Annotated[bool, "only alerts that batch has not found"] = False
    each: Annotated[Limit | None, "maximum number of alerts per rule, highest severity first"] = (
        None
    )
    before: Annotated[int | None, "only alerts older than the one with this number"] = None
    limit: Annotated[Limit, "maximum number of rows"] = LISTED
    among: tuple[str, ...] | None = None  # the rules and watches that the caller may read

    def readable(self, service: RequestHandler, caller: Caller) -> Alerts:
        """Alerts of the rules and watches that the caller may read, of one of them or of all."""
        if self.rule is not None:
            caller.check(Operation.READ, object_of("rule", self.rule))
        if self.rule is not None or may_read_all(caller):
            return service.ask(self)
        rules = RulesRequest().readable(service, caller).rules
        watches = WatchesRequest().readable(service, caller).watches
        names = dict.fromkeys([rule.name for rule in rules] + [watch.name for watch in watches])
        return service.ask(replace(self, among=tuple(names)))


class AlertRequest(GetRequest[Alert], frozen=True):
    """One alert, with the state of its notifications."""

    endpoint = Endpoint("/v1/alerts/{alert}", "alert", needs.reads("alert"), stored=True)
    alert: Annotated[str, "id of an alert, or the beginning of one"]
