"""A flow's position is those of its streams, one after the other."""

from __future__ import annotations

from headrace.compile.flow import FlowPlan, whole
from headrace.compile.plan import ColumnPlan, StreamPlan
from headrace.core.position import Position, PositionRange


def stream(name: str, partitions: int) -> StreamPlan:
    return StreamPlan(name, (ColumnPlan("ts", "TIMESTAMP", True),), "json", partitions, ("ts", 10))


PAIR = FlowPlan("orders+payments", (stream("orders", 2), stream("payments", 1)), joined=True)


def test_a_position_is_shared_out_to_the_streams_and_put_together_again() -> None:
    position = Position((3, 5, 8))
    assert PAIR.partitions == 3
    assert PAIR.positions(position) == [Position((3, 5)), Position((8,))]
    assert whole(PAIR.positions(position)) == position


def test_a_range_is_shared_out_too() -> None:
    range = PositionRange(Position((1, 2, 3)), Position((4, 4, 3)))
    assert [len(part) for part in PAIR.ranges(range)] == [5, 0]
