"""What an action is to the one who calls it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from headrace.serving.notices import Notice


class Undeliverable(Exception):
    """It makes no sense to try this again."""


class Action(Protocol):
    at_once: int  # notices that one call takes at most

    def deliver(self, notices: Sequence[Notice]) -> None:
        """Deliver all of them, or raise."""


def said(notice: Notice) -> dict[str, Any]:
    """The notification as an object."""
    found: dict[str, Any] = msgspec.json.decode(notice.body)
    return found
