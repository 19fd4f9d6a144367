"""What can be asked and said of rules and alerts, wherever the project runs.

`run.rulebook.StoreRulebook` answers from the store, for a running project and for a stopped one;
`api.remote_rulebook.RemoteRulebook` asks another process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from headrace.access.caller import OWNER, Caller
from headrace.serving.ledger import Alert, Alerts, Numbers, Wanted
from headrace.serving.rules import RuleVersion


class Muted(msgspec.Struct, frozen=True):
    """Alerts with these values are recorded and not notified."""

    rule: str
    keys: dict[str, str]
    until: str

    @property
    def values(self) -> str:
        """Such as user=ada; nothing where all of the rule is muted."""
        return ", ".join(f"{key}={value}" for key, value in self.keys.items())


class RuleStatus(msgspec.Struct, frozen=True):
    """A rule as it is now, and how many alerts and notifications it has."""

    name: str
    version: int
    state: str  # enabled, disabled
    severity: str
    kept: bool  # added while the project ran; else it is in the project's files
    changed_at: str
    changed_by: str
    text: str
    numbers: Numbers = Numbers()
    mutes: list[Muted] = []


class Rulebook(Protocol):
    def rules(self) -> list[RuleStatus]: ...

    def rule(self, name: str) -> RuleStatus: ...

    def history(self, name: str) -> list[RuleVersion]:
        """All versions of a rule, the newest first, also of one that was removed."""

    def add(self, text: str, who: str, caller: Caller = OWNER) -> list[RuleStatus]:
        """Add the rules of a text, or change those that were added before. The caller must be
        allowed to define them and to read what they read.
        """

    def remove(self, name: str, who: str) -> RuleVersion: ...

    def switch(self, name: str, state: str, who: str) -> RuleVersion:
        """Enable or disable a rule."""

    def mute(self, name: str, length: str, keys: Mapping[str, str], who: str) -> Muted:
        """Record and do not notify for a time, such as 1h."""

    def unmute(self, name: str, keys: Mapping[str, str]) -> list[Muted]:
        """Notify again: end the mute of these values, or all of the rule."""

    def alerts(self, wanted: Wanted) -> Alerts:
        """The newest first, and how many there are."""

    def alert(self, id: str) -> Alert: ...

    def acknowledge(self, id: str, who: str, note: str | None = None) -> Alert: ...

    def retry(self, alert: str | None = None, rule: str | None = None) -> int:
        """Try failed notifications again, of an alert, a rule, a watch or all; how many."""
