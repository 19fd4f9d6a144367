"""`headrace rule`: show and change rules; each change has its author.

tests/cli/test_rules.py reads the pages.
"""

from __future__ import annotations

from pathlib import Path

from rich.table import Table
from rich.text import Text

from headrace.api.resources.rules import RuleRequest, RulesRequest, RuleVersionsRequest
from headrace.api.rule_service import MuteStatus, RuleStatus
from headrace.cli.folder import open_service
from headrace.cli.report import Report, dim, good, unwrapped
from headrace.client.formats import timestamp
from headrace.client.table import table
from headrace.core.errors import BadRequest
from headrace.core.user import os_user
from headrace.serving.rules import RuleVersion

_HEADS = (
    "rule", "state", "severity", "version", "alerts", "open", "suppressed", "missed", "withdrawn",
    "waiting", "failed",
)  # fmt: skip
FILE_BYTES_MAX = 1 << 20


def list_rules(folder: Path) -> Report:
    """All rules."""
    with open_service(folder) as service:
        found = service.ask(RulesRequest()).rules
    return Report({"rules": found}, [rule_table(found) if found else Text("no rules")])


def rule_table(found: list[RuleStatus]) -> Table:
    return table(*_HEADS, rows=[_row(rule) for rule in found], right=_HEADS[3:])


def _row(rule: RuleStatus) -> list[str | Text]:
    n = rule.numbers
    state = good(rule.state) if rule.state == "enabled" else Text(rule.state, style="yellow")
    numbers = (n.alerts, n.open, n.suppressed, n.missed, n.withdrawn, n.waiting, n.failed)
    return [rule.name, state, rule.severity, str(rule.version), *(f"{m:,}" for m in numbers)]


def show_rule(folder: Path, name: str) -> Report:
    with open_service(folder) as service:
        found = service.ask(RuleRequest(name))
    where = "added at run time" if found.kept else "in the project's files"
    by = f"{where}, by {found.changed_by} at {timestamp(found.changed_at)} UTC"
    muted = [Text(_muted(mute), style="yellow") for mute in found.mutes]
    return Report(found, [rule_table([found]), "", unwrapped(found.text), *muted, dim(by)])


def _muted(mute: MuteStatus) -> str:
    of = f" ({mute.values})" if mute.values else ""
    return f"muted{of} until {timestamp(mute.until)} UTC"


def add(folder: Path, file: Path) -> Report:
    """Add the rules of a file."""
    text = read_text(file)
    with open_service(folder) as service:
        found = service.rule_service.add(text, os_user())
    lines = [good(f"{rule.name}: version {rule.version}") for rule in found]
    return Report({"rules": found}, lines)


def read_text(file: Path, encoding: str = "utf-8") -> str:
    """The text of a file of definitions."""
    try:
        if file.stat().st_size > FILE_BYTES_MAX:
            raise BadRequest(f"{file} is larger than {FILE_BYTES_MAX:,} bytes")
        return file.read_text(encoding)
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"{file} cannot be read: {error}") from error


def switch(folder: Path, name: str, state: str) -> Report:
    with open_service(folder) as service:
        return _changed(service.rule_service.switch(name, state, os_user()))


def remove(folder: Path, name: str) -> Report:
    with open_service(folder) as service:
        return _changed(service.rule_service.remove(name, os_user()))


def _changed(version: RuleVersion) -> Report:
    return Report(version, [good(f"{version.name}: {version.state}, version {version.version}")])


def history(folder: Path, name: str) -> Report:
    with open_service(folder) as service:
        found = service.ask(RuleVersionsRequest(name)).versions
    rows = [
        [str(v.version), v.state, f"{timestamp(v.changed_at)} UTC", v.changed_by, v.text]
        for v in found
    ]
    return Report({"versions": found}, [table("version", "state", "at", "by", "text", rows=rows)])
