"""A flow: the streams that a view reads together, as one position.

The position of a flow is the concatenation of its streams' positions, so everything that is true
for a stream (boundary, epochs, generations) is true for a flow. A single stream is a flow. The
streams of a join are a joined flow with its own position, because an answer over two streams is
consistent at one position of both. tests/compile/test_flow.py checks the arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from headrace.compile.plan import Plan, StreamPlan
from headrace.core.position import Position, PositionRange

T = TypeVar("T")


class FlowPlan(msgspec.Struct, frozen=True):
    """The streams of a flow, in the order of their partitions in its position."""

    name: str
    streams: tuple[StreamPlan, ...]
    joined: bool = False

    @property
    def partitions(self) -> int:
        return sum(stream.partitions for stream in self.streams)

    def parts(self, values: Sequence[T]) -> list[tuple[T, ...]]:
        """Values of the flow's partitions, split by stream."""
        found, first = [], 0
        for stream in self.streams:
            found.append(tuple(values[first : first + stream.partitions]))
            first += stream.partitions
        return found

    def positions(self, position: Position) -> list[Position]:
        return [Position(offsets) for offsets in self.parts(position.offsets)]

    def ranges(self, range: PositionRange) -> list[PositionRange]:
        pairs = zip(self.positions(range.lower), self.positions(range.upper), strict=True)
        return [PositionRange(lower, upper) for lower, upper in pairs]


def whole(positions: Iterable[Position]) -> Position:
    """The position of a flow, from those of its streams."""
    return Position(tuple(offset for position in positions for offset in position.offsets))


def flows_of(plan: Plan) -> list[FlowPlan]:
    """Every stream as a flow, and the joined flows of the plan's views."""
    flows = {stream.name: FlowPlan(stream.name, (stream,)) for stream in plan.streams}
    for view in plan.views:
        if view.join is not None:
            names = dict.fromkeys((view.join.left, view.join.right))
            streams = tuple(plan.stream(name) for name in names)
            flows[view.stream] = FlowPlan(view.stream, streams, joined=True)
    return list(flows.values())
