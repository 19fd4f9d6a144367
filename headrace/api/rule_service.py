"""Rules and alerts of a project, wherever it runs.
`run.rule_service.LocalRuleService` uses the store, for a running project and for a stopped one;
`api.remote_rules.RemoteRuleService` another process over HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from headrace.access.caller import OWNER, Caller
from headrace.serving.alerts import Alert, AlertCounts
from headrace.serving.rules import RuleVersion


class MuteStatus(msgspec.Struct, frozen=True):
    """Until this time, alerts with these key values are recorded and not notified."""

    rule: str
    keys: dict[str, str]
    until: str

    @property
    def values(self) -> str:
        """Such as user=ada; empty if the whole rule is muted."""
        return ", ".join(f"{key}={value}" for key, value in self.keys.items())


class RuleStatus(msgspec.Struct, frozen=True):
    """The current version of a rule, and the counters of its alerts and notifications."""

    name: str
    version: int
    state: str  # enabled, disabled
    severity: str
    kept: bool  # added at run time; else it is in the project's files
    changed_at: str
    changed_by: str
    text: str
    numbers: AlertCounts = AlertCounts()
    mutes: list[MuteStatus] = []


class RuleService(Protocol):
    def add(self, text: str, who: str, caller: Caller = OWNER) -> list[RuleStatus]:
        """Add the rules of a text, or change those that were added before. The caller must be
        allowed to define them and to read what they read.
        """

    def remove(self, name: str, who: str) -> RuleVersion: ...

    def switch(self, name: str, state: str, who: str) -> RuleVersion:
        """Enable or disable a rule."""

    def mute(self, name: str, length: str, keys: Mapping[str, str], who: str) -> MuteStatus:
        """Mute for a time, such as 1h: alerts are recorded, not notified."""

    def unmute(self, name: str, keys: Mapping[str, str]) -> list[MuteStatus]:
        """End the mute of these key values, or all mutes of the rule."""

    def acknowledge(self, id: str, who: str, note: str | None = None) -> Alert: ...

    def retry(self, alert: str | None = None, rule: str | None = None) -> int:
        """Retry failed notifications of an alert, a rule, a watch or all; returns their number."""
