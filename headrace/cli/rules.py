"""`headrace rule`: what rules there are, and changes to them, each with the name of who made it.

tests/cli/test_rules.py reads the pages.
"""

from __future__ import annotations

from pathlib import Path

from rich.table import Table
from rich.text import Text

from headrace.api.rulebook import Muted, RuleStatus
from headrace.cli.folder import asked
from headrace.cli.report import Report, dim, good, whole
from headrace.client.table import table
from headrace.client.words import moment
from headrace.core.errors import BadRequest
from headrace.core.user import os_user
from headrace.serving.rules import RuleVersion

_HEADS = (
    "rule", "state", "severity", "version", "alerts", "open", "suppressed", "missed", "withdrawn",
    "waiting", "failed",
)  # fmt: skip
FILE_BYTES_MAX = 1 << 20


def listed(folder: Path) -> Report:
    """All rules."""
    with asked(folder) as service:
        found = service.rulebook.rules()
    return Report({"rules": found}, [rule_table(found) if found else Text("no rules")])


def rule_table(found: list[RuleStatus]) -> Table:
    return table(*_HEADS, rows=[_row(rule) for rule in found], right=_HEADS[3:])


def _row(rule: RuleStatus) -> list[str | Text]:
    n = rule.numbers
    state = good(rule.state) if rule.state == "enabled" else Text(rule.state, style="yellow")
    numbers = (n.alerts, n.open, n.suppressed, n.missed, n.withdrawn, n.waiting, n.failed)
    return [rule.name, state, rule.severity, str(rule.version), *(f"{m:,}" for m in numbers)]


def shown(folder: Path, name: str) -> Report:
    with asked(folder) as service:
        found = service.rulebook.rule(name)
    where = "added while it ran" if found.kept else "in the project's files"
    by = f"{where}, by {found.changed_by} at {moment(found.changed_at)} UTC"
    muted = [Text(_muted(mute), style="yellow") for mute in found.mutes]
    return Report(found, [rule_table([found]), "", whole(found.text), *muted, dim(by)])


def _muted(mute: Muted) -> str:
    of = f" ({mute.values})" if mute.values else ""
    return f"muted{of} until {moment(mute.until)} UTC"


def add(folder: Path, file: Path) -> Report:
    """Add the rules of a file."""
    text = read_text(file)
    with asked(folder) as service:
        found = service.rulebook.add(text, os_user())
    said = [good(f"{rule.name}: version {rule.version}") for rule in found]
    return Report({"rules": found}, said)


def read_text(file: Path) -> str:
    """The text of a file of definitions."""
    try:
        if file.stat().st_size > FILE_BYTES_MAX:
            raise BadRequest(f"{file} is larger than {FILE_BYTES_MAX:,} bytes")
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"{file} cannot be read: {error}") from error


def switch(folder: Path, name: str, state: str) -> Report:
    with asked(folder) as service:
        return _changed(service.rulebook.switch(name, state, os_user()))


def remove(folder: Path, name: str) -> Report:
    with asked(folder) as service:
        return _changed(service.rulebook.remove(name, os_user()))


def _changed(version: RuleVersion) -> Report:
    return Report(version, [good(f"{version.name}: {version.state}, version {version.version}")])


def history(folder: Path, name: str) -> Report:
    with asked(folder) as service:
        found = service.rulebook.history(name)
    rows = [
        [str(v.version), v.state, f"{moment(v.changed_at)} UTC", v.changed_by, v.text]
        for v in found
    ]
    return Report({"versions": found}, [table("version", "state", "at", "by", "text", rows=rows)])
