"""The rules and alerts of a project, from its store.

Disabling, muting and acknowledging only change the store. Adding or removing a rule changes the
plan, which the deployer deploys. tests/run/test_rule_service.py checks each.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Protocol

from headrace.access.caller import OWNER, Caller
from headrace.api.rule_service import MuteStatus, RuleStatus
from headrace.compile.plan import WatchPlan
from headrace.core.errors import BadDefinition, BadRequest, NotFound
from headrace.core.time import duration_us, iso
from headrace.define.definitions import RuleDefinition, WatchDefinition
from headrace.define.project import Project, duplicate_definitions
from headrace.run.added_definitions import added_rules, parse_rule
from headrace.run.definition_text import parse_added
from headrace.run.read_permission import check_definitions
from headrace.serving import alerts, mutes, notifications, rules
from headrace.serving.alert_metrics import AlertMetrics, read_alert_metrics
from headrace.serving.alerts import Alert, AlertFilter, Alerts
from headrace.serving.database import Transaction
from headrace.serving.database_store import DatabaseStore
from headrace.serving.rules import RuleVersion

AddedRules = Mapping[str, RuleDefinition]  # the rules added at run time, by name


class Deployer(Protocol):
    """Deploys changed rules and watches: a running project, or a stopped one for its next start."""

    def become_writer(self) -> None:
        """Become the writer of the store, if it is not already."""

    def redeploy(
        self, added: AddedRules, who: str, watches: tuple[WatchDefinition, ...] = ()
    ) -> None:
        """Deploy these rules beside those of the files, and the shapes of these watches."""

    def add_watches(self, plans: Sequence[WatchPlan], who: str) -> None:
        """Add watches of deployed shapes."""


class LocalRuleService:
    """`RuleService` of a project in this process."""

    def __init__(
        self, files: Project, store: DatabaseStore, deployer: Deployer, changing: threading.Lock
    ) -> None:
        self.files, self.store, self.deployer = files, store, deployer
        # Held while the added rules are read and replaced. The watch service shares the lock,
        # because a watch of a new shape replaces the added rules too.
        self._changing = changing

    def rules(self) -> list[RuleStatus]:
        with self.store.read() as db:
            return [self._status(db, rule) for rule in rules.newest_versions(db).values()]

    def rule(self, name: str) -> RuleStatus:
        with self.store.read() as db:
            return self._status(db, rules.find_rule(db, name))

    def _status(self, db: Transaction, rule: RuleVersion) -> RuleStatus:
        severity = parse_rule(rule).severity.value
        muted = mutes.active_mutes(db, rule.name, self.store.clock())
        return RuleStatus(
            rule.name, rule.version, rule.state, severity, rule.kept, rule.changed_at,
            rule.changed_by, rule.text, alerts.count_alerts(db, rule.name),
            [_muted(rule.name, mute) for mute in muted],
        )  # fmt: skip

    def history(self, name: str) -> list[RuleVersion]:
        with self.store.read() as db:
            return rules.history(db, name) or [rules.find_rule(db, name)]

    def add(self, text: str, who: str, caller: Caller = OWNER) -> list[RuleStatus]:
        parsed = parse_added(text, RuleDefinition, self.files.settings.query)
        for mistake in duplicate_definitions(parsed):
            raise mistake
        new = {rule.name: rule for rule in parsed}
        check_definitions(caller, self.store.deployed(), new.values())
        with self._changing:
            self.deployer.redeploy(added_rules(self.store) | new, who)
        return [self.rule(name) for name in new]

    def remove(self, name: str, who: str) -> RuleVersion:
        found = self.rule(name)
        if not found.kept:
            origin = self.files.rules[found.name].origin if found.name in self.files.rules else ""
            raise BadDefinition(
                f"rule '{found.name}' is defined in the project's files and must be removed there",
                hint=f"remove it from {origin} and restart, or disable it.",
            )
        with self._changing:
            added = added_rules(self.store)
            added.pop(found.name, None)
            self.deployer.redeploy(added, who)
        return self.history(found.name)[0]

    def switch(self, name: str, state: str, who: str) -> RuleVersion:
        plan = self.store.deployed()
        self.deployer.become_writer()
        with self.store.write() as db:
            old = rules.find_rule(db, name)
            if old.state != state:
                rules.add_version(db, old.name, old.text, state, old.kept, who, self.store.clock())
                for rule in plan.rules if plan else ():
                    if rule.name == old.name:
                        rules.start_rule(db, rule)
            return rules.find_rule(db, name)

    def mute(self, name: str, length: str, keys: Mapping[str, str], who: str) -> MuteStatus:
        now = self.store.clock()
        until = now + _duration_us(length)
        found = self.rule(name)
        self._check_keys(found.name, keys)
        self.deployer.become_writer()
        with self.store.write() as db:
            mutes.mute(db, found.name, dict(keys), until, who, now)
        return MuteStatus(found.name, dict(keys), iso(until))

    def unmute(self, name: str, keys: Mapping[str, str]) -> list[MuteStatus]:
        found = self.rule(name)
        self.deployer.become_writer()
        with self.store.write() as db:
            ended = mutes.unmute(db, found.name, keys, self.store.clock())
        if not ended:
            known = "; ".join(mute.values or "the whole rule" for mute in found.mutes)
            hint = f"active mutes: {known or 'none'}."
            raise NotFound(f"rule '{found.name}' is not muted for these keys", hint=hint)
        return [_muted(found.name, mute) for mute in ended]

    def _check_keys(self, name: str, keys: Mapping[str, str]) -> None:
        plan = self.store.deployed()
        columns = next((r.columns for r in plan.rules if r.name == name), ()) if plan else ()
        for key in keys:
            if key not in columns:
                raise BadRequest(
                    f"'{key}' is not a column of rule '{name}'",
                    hint=f"available columns: {', '.join(columns)}.",
                )

    def alerts(self, wanted: AlertFilter) -> Alerts:
        with self.store.read() as db:
            return alerts.read_alerts(db, wanted)

    def alert(self, id: str) -> Alert:
        with self.store.read() as db:
            return alerts.read_alert(db, id)

    def acknowledge(self, id: str, who: str, note: str | None = None) -> Alert:
        self.deployer.become_writer()
        with self.store.write() as db:
            return alerts.acknowledge(db, id, who, note, self.store.clock())

    def tally(self) -> AlertMetrics:
        """The totals of alerts, matches and notifications."""
        with self.store.read() as db:
            return read_alert_metrics(db, self.store.clock())

    def retry(self, alert: str | None = None, rule: str | None = None) -> int:
        plan = self.store.deployed()
        id = self.alert(alert).id if alert is not None else None
        self.deployer.become_writer()
        with self.store.write() as db:
            return notifications.retry(db, plan.rules if plan else (), rule, id, self.store.clock())


def _muted(rule: str, mute: mutes.Mute) -> MuteStatus:
    return MuteStatus(rule, mute.keys, iso(mute.until_us))


def _duration_us(text: str) -> int:
    try:
        duration = duration_us(text)
    except ValueError as error:
        raise BadRequest(f"'{text[:40]}' is not a duration such as 1h") from error
    if duration <= 0:
        raise BadRequest("the duration of a mute must be positive")
    return duration
