"""NOTIFY CALL function: a function of the project's functions.py, in the thread of its queue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace.run.actions.protocol import said
from headrace.serving.notices import Notice


class CallAction:
    at_once = 1

    def __init__(self, body: Callable[[dict[str, Any]], Any]) -> None:
        self.body = body

    def deliver(self, notices: Sequence[Notice]) -> None:
        for notice in notices:
            self.body(said(notice))
