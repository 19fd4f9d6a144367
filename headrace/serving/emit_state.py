"""The state of a subscription: the rows as they were last emitted to the subscriber.

The state has one entry for each row that was emitted or waits to be; a row that leaves the answer
is removed. The entry of a closed window stays, so that later changes to it are counted. An
`Emission` has the difference between two states, small enough to be saved with each commit.
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
    """One change of a view as it is sent to a subscriber."""

    sequence: int  # a client resumes after it
    view: str
    op: str  # insert: the row is this now; delete: the row is gone, or is retracted
    key: dict[str, Any]
    window: dict[str, Any] | None
    pane: int  # the number of the pane of this key and window, from 0
    timing: str  # early, on_time, late
    last: bool  # no pane of this window follows
    row: dict[str, Any]


class EmittedRow(msgspec.Struct, frozen=True):
    """The state of one row."""

    row: dict[str, Any] | None = None  # as last emitted
    panes: int = 0
    since_us: int | None = None  # when the oldest change was seen that is not emitted yet
    ignored: dict[str, Any] | None = None  # the newest version after the window was closed


@dataclass(frozen=True, slots=True)
class ViewAnswer:
    """The rows of the view at one time."""

    rows: Iterable[dict[str, Any]]
    watermark_us: int | None
    now_us: int


@dataclass(frozen=True, slots=True)
class Emission:
    """New panes, and what they change in the state."""

    panes: list[Pane]
    changed: dict[str, EmittedRow | None]  # None: the row is removed
    sequence: int
    watermark_us: int | None
    dropped: int


@dataclass(slots=True)
class EmitState:
    """What was emitted to a subscriber so far."""

    sequence: int = 0  # of the newest pane
    watermark_us: int | None = None
    dropped: int = 0  # changes of closed windows
    rows: dict[str, EmittedRow] = field(default_factory=dict)

    def apply(self, emission: Emission) -> None:
        self.sequence, self.dropped = emission.sequence, emission.dropped
        self.watermark_us = emission.watermark_us
        for key, entry in emission.changed.items():
            if entry is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = entry

    def due_us(self, subscription: Subscription, now_us: int) -> int | None:
        """When a pane may be due although nothing is committed. A change that still waits after
        one interval waits for the other.
        """
        waiting = {entry.since_us for entry in self.rows.values() if entry.since_us is not None}
        ends = (since + interval for since in waiting for interval in subscription.intervals)
        return min((end for end in ends if end > now_us), default=None)


prepare_types(EmittedRow)
