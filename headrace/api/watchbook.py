"""What can be asked and said of watches, wherever the project runs.

`run.watchbook.StoreWatchbook` answers from the store; `api.remote_watchbook.RemoteWatchbook` asks
another process.
"""

from __future__ import annotations

from typing import Protocol

from headrace.access.caller import OWNER, Caller
from headrace.serving.watches import WatchStatus


class Watchbook(Protocol):
    def watches(self, state: str | None = None) -> list[WatchStatus]:
        """All watches, or those in one state: active or ended."""

    def watch(self, name: str) -> WatchStatus: ...

    def add(self, text: str, who: str, caller: Caller = OWNER) -> list[WatchStatus]:
        """Add the watches of a text, or change those that were added before; as with rules."""

    def remove(self, name: str, who: str) -> WatchStatus:
        """Take a watch away; its alerts stay."""
