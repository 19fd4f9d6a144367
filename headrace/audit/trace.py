"""The answers of `why` and `replay`: the events behind one row, and its history.

Every record up to the answer's position is in exactly one place of a `Why`: behind the row, or left
out for one reason. tests/audit/test_why.py adds them up.
"""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.serving.answer import AsOf

LISTED = (
    50  # the default number of events of a kind, or steps, that are listed; the rest is counted
)


class TracedRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """One record of a stream's log; its bytes as text where they are text."""

    stream: str
    partition: int
    offset: int
    event_time: str | None
    arrived_at: str
    raw: str
    late: bool = False
    reason: str | None = None  # of a dead letter


class SkippedRecords(msgspec.Struct, frozen=True):
    """Records that are not behind the row, all for one reason; some are only counted."""

    reason: str
    events: int
    listed: list[TracedRecord]


class Why(msgspec.Struct, frozen=True):
    """The events behind one row of a view, and those that are not."""

    view: str
    key: dict[str, Any]
    row: dict[str, Any] | None  # as it is answered; None if there is no such row
    events: int
    listed: list[TracedRecord]
    left_out: list[SkippedRecords]
    agrees: bool  # whether a second engine makes the row of exactly these events
    sentence: str
    as_of: dict[str, AsOf]


class ReplayStep(msgspec.Struct, frozen=True):
    """An epoch or a generation that changed the row, and the row after it."""

    what: str  # epoch, generation
    number: int
    at: str
    position: list[int]  # speed's, after it
    boundary: list[int]  # batch's, after it
    events: int  # of the row; for a generation those that it took over from speed, or brought
    late: int  # among them
    shed: int  # shed by the epoch; absorbed by the generation
    row: dict[str, Any] | None


class Replay(msgspec.Struct, frozen=True):
    """The history of one row."""

    view: str
    key: dict[str, Any]
    row: dict[str, Any] | None
    steps: list[ReplayStep]
    earlier: int  # steps before those, which are only counted
    agrees: bool
    sentence: str
    as_of: dict[str, AsOf]
