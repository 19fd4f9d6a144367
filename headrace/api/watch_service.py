"""Watches of a project, wherever it runs.

`run.watch_service.LocalWatchService` changes the store; `api.remote_watches.RemoteWatchService`
sends requests to another process.
"""

from __future__ import annotations

from typing import Protocol

from headrace.access.caller import OWNER, Caller
from headrace.serving.watches import WatchStatus


class WatchService(Protocol):
    def add(self, text: str, who: str, caller: Caller = OWNER) -> list[WatchStatus]:
        """Add the watches of a text, or change those that were added before; as with rules."""

    def remove(self, name: str, who: str) -> WatchStatus:
        """Remove a watch; its alerts are kept."""
