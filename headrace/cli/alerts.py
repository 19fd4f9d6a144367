"""`headrace alerts`: list, show, acknowledge, mute and retry alerts.

tests/cli/test_rules.py reads the pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import RenderableType
from rich.text import Text

from headrace.api.resources.alerts import AlertRequest, AlertsRequest
from headrace.api.rule_service import MuteStatus
from headrace.cli.folder import open_service
from headrace.cli.late import keys_of
from headrace.cli.report import Report, dim, good
from headrace.client.formats import plural, timestamp
from headrace.client.table import table
from headrace.core.user import os_user
from headrace.serving.alerts import Alert

_HEADS = ("id", "rule", "severity", "state", "event time", "raised by", "body")
_ID = 12
_STYLES = {"open": "red", "acknowledged": "green"}


def list_alerts(
    folder: Path,
    rule: str | None,
    state: str | None,
    missed: bool,
    withdrawn: bool,
    each: int,
    limit: int,
) -> Report:
    """The newest alerts of each rule, the most severe rules first."""
    with open_service(folder) as service:
        wanted = AlertsRequest(
            rule, state, missed, withdrawn, each=limit if rule else each, limit=limit
        )
        found = service.ask(wanted)
    rows = [_row(alert) for alert in found.alerts]
    if not rows:
        return Report(found, [Text("no alerts")])
    more = f"{len(rows):,} of {found.total:,}" if found.total > len(rows) else ""
    return Report(found, [table(*_HEADS, rows=rows), *([dim(more)] if more else [])])


def _row(alert: Alert) -> list[str | Text]:
    body = msgspec.json.encode(alert.body).decode()
    return [
        alert.id[:_ID], alert.rule, alert.severity, _state(alert),
        timestamp(alert.event_time), alert.raised_by, body,
    ]  # fmt: skip


def _state(alert: Alert) -> Text:
    parts = [alert.state, "missed" if alert.missed and alert.state != "missed" else ""]
    parts += ["withdrawn" if alert.withdrawn_at else ""]
    return Text(", ".join(filter(None, parts)), style=_STYLES.get(alert.state, "dim"))


def show_alert(folder: Path, id: str) -> Report:
    with open_service(folder) as service:
        return _alert(service.ask(AlertRequest(id)))


def acknowledge(folder: Path, id: str, note: str | None) -> Report:
    with open_service(folder) as service:
        return _alert(service.rule_service.acknowledge(id, os_user(), note))


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
    with open_service(folder) as service:
        found = service.rule_service.mute(rule, time, keys_of(where), os_user())
    line = f"{_of(found)}: muted until {timestamp(found.until)} UTC"
    return Report(found, [good(line)])


def unmute(folder: Path, rule: str, where: Sequence[str]) -> Report:
    with open_service(folder) as service:
        found = service.rule_service.unmute(rule, keys_of(where))
    return Report({"mutes": found}, [good(f"{_of(mute)}: not muted any more") for mute in found])


def _of(mute: MuteStatus) -> str:
    return f"{mute.rule} ({mute.values})" if mute.values else mute.rule


def retry(folder: Path, id: str | None, rule: str | None) -> Report:
    with open_service(folder) as service:
        count = service.rule_service.retry(id, rule)
    return Report({"notifications": count}, [good(f"retrying {plural(count, 'notification')}")])
