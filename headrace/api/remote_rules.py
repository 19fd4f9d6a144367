"""The client of rules and alerts of a project in another process, over HTTP.

The server takes the caller from the token, and authorizes each request.
tests/api/test_rule_handlers.py calls each method.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from headrace.access.caller import OWNER, Caller
from headrace.api.resources.rules import RuleList
from headrace.api.rule_service import MuteStatus, RuleStatus
from headrace.api.shapes import Mutes, RetryResult
from headrace.serving.alerts import Alert
from headrace.serving.rules import RuleVersion


class RemoteRuleService:
    """`ask` sends a request and decodes the response; `ask_slowly` has a longer timeout."""

    def __init__(self, ask: Callable[..., Any], ask_slowly: Callable[..., Any]) -> None:
        self._ask, self._ask_slowly = ask, ask_slowly

    def add(self, text: str, who: str, caller: Caller = OWNER) -> list[RuleStatus]:
        found: RuleList = self._ask_slowly(RuleList, "POST", "/v1/rules", json={"sql": text})
        return found.rules

    def remove(self, name: str, who: str) -> RuleVersion:
        return self._change(name, "remove", who)

    def switch(self, name: str, state: str, who: str) -> RuleVersion:
        return self._change(name, "enable" if state == "enabled" else "disable", who)

    def _change(self, name: str, what: str, who: str) -> RuleVersion:
        found: RuleVersion = self._ask_slowly(RuleVersion, "POST", _path(name, what))
        return found

    def mute(self, name: str, length: str, keys: Mapping[str, str], who: str) -> MuteStatus:
        body = {"for": length, "keys": dict(keys)}
        found: MuteStatus = self._ask(MuteStatus, "POST", _path(name, "mute"), json=body)
        return found

    def unmute(self, name: str, keys: Mapping[str, str]) -> list[MuteStatus]:
        found: Mutes = self._ask(Mutes, "POST", _path(name, "unmute"), json={"keys": dict(keys)})
        return found.mutes

    def acknowledge(self, id: str, who: str, note: str | None = None) -> Alert:
        path = f"/v1/alerts/{quote(id, safe='')}/ack"
        found: Alert = self._ask(Alert, "POST", path, json={"note": note})
        return found

    def retry(self, alert: str | None = None, rule: str | None = None) -> int:
        body = {"alert": alert, "rule": rule}
        found: RetryResult = self._ask(RetryResult, "POST", "/v1/alerts/retry", json=body)
        return found.notifications


def _path(name: str, *rest: str) -> str:
    return "/".join(["/v1/rules", quote(name, safe=""), *rest])
