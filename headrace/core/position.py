"""A position is a point in a stream's log: one next offset for each partition.

A boundary is a position, never an event time, so lateness cannot cross it. `lower <= upper`
compares partition by partition; `PositionRange(lower, upper)` holds the offsets `[lower, upper)`
of each. A range is read partition by partition, and every place in it is a position again: `after`
an event, and after the first `half`. tests/core/test_position.py checks the algebra.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from headrace.core.errors import BadQuery

_OFFSETS = re.compile(r"\d{1,18}(,\d{1,18})*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Interval:
    """The whole numbers `[lower, upper)`.

    >>> Interval(2, 5).overlaps(Interval(5, 7)), Interval(2, 5).meets(Interval(5, 7))
    (False, True)
    """

    lower: int
    upper: int

    def __post_init__(self) -> None:
        if self.lower > self.upper:
            raise ValueError(
                f"an interval cannot end before it begins: [{self.lower}, {self.upper})"
            )

    def __len__(self) -> int:
        return self.upper - self.lower

    def overlaps(self, other: Interval) -> bool:
        return self.lower < other.upper and other.lower < self.upper

    def meets(self, other: Interval) -> bool:
        return self.upper == other.lower

    def split_at(self, point: int) -> tuple[Interval, Interval]:
        return Interval(self.lower, point), Interval(point, self.upper)


@dataclass(frozen=True, slots=True)
class Position:
    """One next offset for each partition; the events before it have been processed.

    >>> Position((3, 5)) <= Position((3, 7)), Position((4, 5)) <= Position((3, 7))
    (True, False)
    >>> Position.parse("3,5")
    Position(offsets=(3, 5))
    """

    offsets: tuple[int, ...]

    @staticmethod
    def start(partitions: int) -> Position:
        return Position((0,) * partitions)

    @staticmethod
    def parse(text: str) -> Position:
        return Position(tuple(int(part) for part in text.split(",")))

    def __str__(self) -> str:
        return ",".join(map(str, self.offsets))

    def __le__(self, other: Position) -> bool:
        return all(a <= b for a, b in zip(self.offsets, other.offsets, strict=True))

    def __sub__(self, other: Position) -> int:
        """The number of events between the two positions."""
        return sum(self.offsets) - sum(other.offsets)

    def latest(self, other: Position) -> Position:
        return Position(tuple(map(max, self.offsets, other.offsets)))

    def earliest(self, other: Position) -> Position:
        return Position(tuple(map(min, self.offsets, other.offsets)))


@dataclass(frozen=True, slots=True)
class PositionRange:
    """The events from `lower` up to, not including, `upper`, in every partition."""

    lower: Position
    upper: Position

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:
            raise ValueError(f"a range cannot end before it begins: {self.lower} .. {self.upper}")

    @staticmethod
    def before(position: Position) -> PositionRange:
        """All events before a position."""
        return PositionRange(Position.start(len(position.offsets)), position)

    def __len__(self) -> int:
        return self.upper - self.lower

    def intervals(self) -> Iterator[tuple[int, Interval]]:
        """The partitions that hold events of this range, each with its offsets."""
        pairs = zip(self.lower.offsets, self.upper.offsets, strict=True)
        for partition, (lower, upper) in enumerate(pairs):
            if lower < upper:
                yield partition, Interval(lower, upper)

    def limited(self, events_max: int) -> PositionRange:
        """At most about `events_max` of these events, shared evenly by the partitions that have
        any.
        """
        if len(self) <= events_max:
            return self
        share = max(1, events_max // max(1, sum(1 for _ in self.intervals())))
        pairs = zip(self.lower.offsets, self.upper.offsets, strict=True)
        return PositionRange(self.lower, Position(tuple(min(u, lo + share) for lo, u in pairs)))

    def half(self) -> PositionRange:
        """The first half of these events; less than all of them if there are at least two.

        >>> PositionRange(Position((0, 5)), Position((1, 8))).half().upper
        Position(offsets=(1, 6))
        """
        left, upper = len(self) // 2, list(self.lower.offsets)
        for partition, interval in self.intervals():
            taken = min(left, len(interval))
            upper[partition] += taken
            left -= taken
        return PositionRange(self.lower, Position(tuple(upper)))

    def after(self, partition: int, offset: int) -> Position:
        """The position after one of these events, when they are read partition by partition.

        >>> PositionRange(Position((0, 5, 0)), Position((3, 8, 4))).after(1, 6)
        Position(offsets=(3, 7, 0))
        """
        before, behind = self.upper.offsets[:partition], self.lower.offsets[partition + 1 :]
        return Position((*before, offset + 1, *behind))


def parse_position(text: str, stream: str, partitions: int) -> Position:
    """The position of a stream that a user wrote."""
    if _OFFSETS.fullmatch(text) and text.count(",") + 1 == partitions:
        return Position.parse(text)
    raise BadQuery(
        f"'{text}' is not a position of '{stream}'",
        hint=f"write one offset for each of its {partitions} partitions, such as '120,98'.",
    )
