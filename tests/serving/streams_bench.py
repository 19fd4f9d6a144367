"""A stream in memory: its rows by their places, as a source gives them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from headrace.core.position import Position, PositionRange
from headrace.serving.channel import Placed


@dataclass
class Held:
    """`values[partition][offset]` are the rows of an event: none, one or more of them."""

    values: tuple[list[tuple[int, ...]], ...] = field(default_factory=lambda: ([], []))
    asked: list[PositionRange] = field(default_factory=list)
    events_max: int = 1_000_000

    def send(self, partition: int, *rows: int) -> None:
        """One event that becomes these rows."""
        self.values[partition].append(rows)

    def end(self) -> Position:
        return Position(tuple(map(len, self.values)))

    def read(self, range: PositionRange) -> tuple[PositionRange, Sequence[Placed]]:
        taken = range.limited(self.events_max)
        self.asked.append(taken)
        return taken, [
            Placed(partition, offset, {"n": row})
            for partition, span in taken.intervals()
            for offset, rows in enumerate(self.values[partition])
            if span.lower <= offset < span.upper
            for row in rows
        ]
