"""The client of watches of a project in another process, over HTTP.

tests/api/test_watches.py calls each method.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from headrace.access.caller import OWNER, Caller
from headrace.api.resources.watches import WatchList
from headrace.serving.watches import WatchStatus


class RemoteWatchService:
    """`ask` sends a request and decodes the response; `ask_slowly` has a longer timeout."""

    def __init__(self, ask: Callable[..., Any], ask_slowly: Callable[..., Any]) -> None:
        self._ask, self._ask_slowly = ask, ask_slowly

    def add(self, text: str, who: str, caller: Caller = OWNER) -> list[WatchStatus]:
        found: WatchList = self._ask_slowly(WatchList, "POST", "/v1/watches", json={"sql": text})
        return found.watches

    def remove(self, name: str, who: str) -> WatchStatus:
        found: WatchStatus = self._ask_slowly(WatchStatus, "POST", f"{_path(name)}/remove")
        return found


def _path(name: str) -> str:
    return f"/v1/watches/{quote(name, safe='')}"
