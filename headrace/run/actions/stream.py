"""NOTIFY STREAM name: each alert is an event, whose id is the alert's.

So one that is sent again is a duplicate to the intake, and counts once. A correction has an id of
its own. The row's columns come by their names, and beside them what is said of the alert.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from headrace.compile.plan import ActionPlan
from headrace.run.actions.protocol import said
from headrace.run.targets import SUBMIT_S_MAX, Submit, flat
from headrace.serving.notices import ENDED, WITHDRAWN, Notice


class StreamAction:
    at_once = 1_000

    def __init__(self, plan: ActionPlan, submit: Submit) -> None:
        self.plan, self.submit = plan, submit

    def deliver(self, notices: Sequence[Notice]) -> None:
        events = [
            msgspec.json.encode(event) for notice in notices for event in self._events(notice)
        ]
        self.submit(self.plan.target, events).result(SUBMIT_S_MAX)

    def _events(self, notice: Notice) -> Iterator[dict[str, Any]]:
        notification = said(notice)
        kind = notification["kind"]
        if kind == ENDED:
            yield self._ended(notification)
        for alert in notification["alerts"]:
            about = {f"alert_{name}": alert[name] for name in _ABOUT}
            id = f"{alert['id']}:{kind}" if kind == WITHDRAWN else alert["id"]
            yield {**flat(alert["body"]), **about, "alert_kind": kind, str(self.plan.id): id}

    def _ended(self, said: dict[str, Any]) -> dict[str, Any]:
        """A watch ends with an event that has no row."""
        at, key = said["ended_at"], said["key"]
        about = (key, said["rule"], said["severity"], at, at, "watch")
        named = {f"alert_{name}": value for name, value in zip(_ABOUT, about, strict=True)}
        return {**named, "alert_kind": ENDED, "alert_why": said["why"], str(self.plan.id): key}


_ABOUT = ("id", "rule", "severity", "event_time", "raised_at", "raised_by")
