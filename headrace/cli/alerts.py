"""`headrace alerts`: the ledger, and what a person says of an alert.

tests/cli/test_rules.py reads the pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import RenderableType
from rich.text import Text

from headrace.api.rulebook import Muted
from headrace.cli.folder import asked
from headrace.cli.late import keys_of
from headrace.cli.report import Report, dim, good
from headrace.client.table import table
from headrace.client.words import moment
from headrace.core.user import os_user
from headrace.serving.ledger import Alert, Wanted

_HEADS = ("id", "rule", "severity", "state", "event time", "raised by", "body")
_ID = 12
_STYLES = {"open": "red", "acknowledged": "green"}


def listed(
    folder: Path, rule: str | None, state: str | None, missed: bool, withdrawn: bool, limit: int
) -> Report:
    """The newest alerts."""
    with asked(folder) as service:
        found = service.rulebook.alerts(Wanted(rule, state, missed, withdrawn, limit))
    rows = [_row(alert) for alert in found.alerts]
    if not rows:
        return Report(found, [Text("no alerts")])
    more = f"the newest {len(rows):,} of {found.total:,}" if found.total > len(rows) else ""
    return Report(found, [table(*_HEADS, rows=rows), *([dim(more)] if more else [])])


def _row(alert: Alert) -> list[str | Text]:
    body = msgspec.json.encode(alert.body).decode()
    return [
        alert.id[:_ID], alert.rule, alert.severity, _state(alert),
        moment(alert.event_time), alert.raised_by, body,
    ]  # fmt: skip


def _state(alert: Alert) -> Text:
    said = [alert.state, "missed" if alert.missed and alert.state != "missed" else ""]
    said += ["withdrawn" if alert.withdrawn_at else ""]
    return Text(", ".join(filter(None, said)), style=_STYLES.get(alert.state, "dim"))


def shown(folder: Path, id: str) -> Report:
    with asked(folder) as service:
        return _alert(service.rulebook.alert(id))


def acknowledge(folder: Path, id: str, note: str | None) -> Report:
    with asked(folder) as service:
        return _alert(service.rulebook.acknowledge(id, os_user(), note))


def _alert(alert: Alert) -> Report:
    parts: list[RenderableType] = [table(*_HEADS, rows=[_row(alert)]), dim(f"id {alert.id}")]
    if alert.suppressed_by:
        parts.append(dim(f"suppressed by {alert.suppressed_by}"))
    if alert.acknowledged_by:
        note = f": {alert.note}" if alert.note else ""
        parts.append(good(f"acknowledged by {alert.acknowledged_by}{note}"))
    rows = [[d.action, d.state, str(d.attempts), d.reason or ""] for d in alert.deliveries]
    if rows:
        parts += ["", table("action", "state", "attempts", "reason", rows=rows)]
    return Report(alert, parts)


def mute(folder: Path, rule: str, time: str, where: Sequence[str]) -> Report:
    with asked(folder) as service:
        found = service.rulebook.mute(rule, time, keys_of(where), os_user())
    line = f"{_of(found)}: nobody is notified until {moment(found.until)} UTC"
    return Report(found, [good(line)])


def unmute(folder: Path, rule: str, where: Sequence[str]) -> Report:
    with asked(folder) as service:
        found = service.rulebook.unmute(rule, keys_of(where))
    return Report({"mutes": found}, [good(f"{_of(mute)}: notified again") for mute in found])


def _of(mute: Muted) -> str:
    return f"{mute.rule} ({mute.values})" if mute.values else mute.rule


def retry(folder: Path, id: str | None, rule: str | None) -> Report:
    with asked(folder) as service:
        count = service.rulebook.retry(id, rule)
    said = "notification is" if count == 1 else "notifications are"
    return Report({"notifications": count}, [good(f"{count:,} {said} tried again")])
