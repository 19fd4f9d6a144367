"""The current rules, and the versions of each."""

from __future__ import annotations

from typing import Annotated

import msgspec

from headrace.access.caller import Caller
from headrace.api import needs
from headrace.api.get_request import Endpoint, GetRequest, RequestHandler
from headrace.api.read_access import readable
from headrace.api.rule_service import RuleStatus
from headrace.serving.rules import RuleVersion


class RuleList(msgspec.Struct, frozen=True):
    """The current rules."""

    rules: list[RuleStatus]


class RuleVersions(msgspec.Struct, frozen=True):
    """All versions of a rule, the newest first."""

    versions: list[RuleVersion]


class RulesRequest(GetRequest[RuleList], frozen=True):
    """All rules, with their counters."""

    endpoint = Endpoint("/v1/rules", "rules", needs.reads(needs.NAMED), stored=True)

    def readable(self, service: RequestHandler, caller: Caller) -> RuleList:
        return RuleList(readable("rule", service.ask(self).rules, caller))


class RuleRequest(GetRequest[RuleStatus], frozen=True):
    """One rule, with its text and counters."""

    endpoint = Endpoint("/v1/rules/{rule}", "rule", needs.reads("rule"), stored=True)
    rule: Annotated[str, "name of a rule"]


class RuleVersionsRequest(GetRequest[RuleVersions], frozen=True):
    """All versions of a rule, each with its author."""

    endpoint = Endpoint(
        "/v1/rules/{rule}/history", "rule_history", needs.reads("rule"), stored=True
    )
    rule: Annotated[str, "name of a rule"]
