"""The watches of a project that runs in another process, asked over HTTP.

tests/api/test_watches.py sends each method there and back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from headrace.access.caller import OWNER, Caller
from headrace.api.shapes import Watches
from headrace.serving.watches import WatchStatus


class RemoteWatchbook:
    """`ask` sends a request and decodes the answer; `patient` does so for work that takes long."""

    def __init__(self, ask: Callable[..., Any], patient: Callable[..., Any]) -> None:
        self._ask, self._patient = ask, patient

    def watches(self, state: str | None = None) -> list[WatchStatus]:
        params = {"state": state} if state else {}
        found: Watches = self._ask(Watches, "GET", "/v1/watches", params=params)
        return found.watches

    def watch(self, name: str) -> WatchStatus:
        found: WatchStatus = self._ask(WatchStatus, "GET", _path(name))
        return found

    def add(self, text: str, who: str, caller: Caller = OWNER) -> list[WatchStatus]:
        found: Watches = self._patient(Watches, "POST", "/v1/watches", json={"sql": text})
        return found.watches

    def remove(self, name: str, who: str) -> WatchStatus:
        found: WatchStatus = self._patient(WatchStatus, "POST", f"{_path(name)}/remove")
        return found


def _path(name: str) -> str:
    return f"/v1/watches/{quote(name, safe='')}"
