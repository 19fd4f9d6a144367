"""What a subscriber has been told: the nouns of panes.

An account has one entry for each row that was told or waits to be; a row that goes is forgotten.
Of a closed window the entry stays, so that its later changes can be counted. `Look` is the
difference between two accounts, small enough to be saved for each commit.
tests/serving/test_panes.py uses them all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from headrace.core.msgspec_types import prepare_types
from headrace.core.subscription import Subscription


class Pane(msgspec.Struct, frozen=True):
    """One thing that a subscriber hears."""

    sequence: int  # resumes after it
    view: str
    op: str  # insert: the row is this now; delete: the row is no more, or is withdrawn
    key: dict[str, Any]
    window: dict[str, Any] | None
    pane: int  # the number of the pane of this key and window, from 0
    timing: str  # early, on_time, late
    last: bool  # nothing more will be said of this window
    row: dict[str, Any]


class Told(msgspec.Struct, frozen=True):
    """What a subscriber knows of one row."""

    row: dict[str, Any] | None = None  # as it was last told
    panes: int = 0
    since_us: int | None = None  # when a change was first seen that is not told yet
    ignored: dict[str, Any] | None = None  # the newest version after the window was closed


@dataclass(frozen=True, slots=True)
class Seen:
    """The view's answer at one moment."""

    rows: Iterable[dict[str, Any]]
    watermark_us: int | None
    now_us: int


@dataclass(frozen=True, slots=True)
class Look:
    """What one look gives: panes to tell, and what changes in the account."""

    panes: list[Pane]
    changed: dict[str, Told | None]  # None: the row is forgotten
    sequence: int
    watermark_us: int | None
    dropped: int


@dataclass(slots=True)
class Account:
    """What a subscriber has been told so far."""

    sequence: int = 0  # of the newest pane
    watermark_us: int | None = None
    dropped: int = 0  # changes of closed windows
    rows: dict[str, Told] = field(default_factory=dict)

    def after(self, look: Look) -> None:
        """Take in what a look has given."""
        self.sequence, self.dropped = look.sequence, look.dropped
        self.watermark_us = look.watermark_us
        for key, told in look.changed.items():
            if told is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = told

    def due_us(self, asked: Subscription, now_us: int) -> int | None:
        """When something may be told although nothing comes in. A change that still waits after an
        interval waits for the other one.
        """
        waiting = {told.since_us for told in self.rows.values() if told.since_us is not None}
        ends = (since + interval for since in waiting for interval in asked.intervals)
        return min((end for end in ends if end > now_us), default=None)


prepare_types(Told)
