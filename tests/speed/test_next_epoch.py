"""What the next epoch takes, decided without Spark or a log."""

from __future__ import annotations

import pytest

from headrace.compile.flow import FlowPlan
from headrace.compile.plan import ColumnPlan, StreamPlan
from headrace.core.position import Position, PositionRange
from headrace.core.shedding import Shedding
from headrace.core.time import SECOND
from headrace.define.definitions import PaceDefinition
from headrace.serving.store import StreamState
from headrace.serving.watermark import FlowProgress
from headrace.speed.next_epoch import NextEpoch, limit_after, next_epoch

CLICKS = StreamPlan(
    "clicks", (ColumnPlan("ts", "TIMESTAMP", True),), "json", 2, watermark=("ts", 10 * SECOND),
    idle_us=60 * SECOND,
)  # fmt: skip
FLOW = FlowPlan("clicks", (CLICKS,))
HERE = Position((4, 2))
# Partition 1 holds the watermark back until it is idle.
REACHED = FlowProgress(HERE, (100 * SECOND, 50 * SECOND), (40 * SECOND,))
STATE = StreamState(FLOW, REACHED, REACHED, 1, (0, 0), None, None)
STEADY, SHED = PaceDefinition(), PaceDefinition(overload="shed oldest", lag_events_max=6)


def taken(
    end: Position, pace: PaceDefinition = STEADY, limit: int = 100, now_us: int = 0
) -> NextEpoch | None:
    return next_epoch(STATE, end, pace, 100, limit, now_us)


def to(*offsets: int, shedding: Shedding | None = None) -> NextEpoch:
    return NextEpoch(PositionRange(HERE, Position(offsets)), shedding)


def test_an_epoch_takes_what_waits() -> None:
    assert taken(Position((9, 2))) == to(9, 2)


def test_an_epoch_keeps_to_its_limit_and_shares_it_among_partitions() -> None:
    assert taken(Position((9, 12)), limit=4) == to(6, 4)


@pytest.mark.parametrize("end", [HERE, Position((3, 0))])
def test_without_news_there_is_no_epoch(end: Position) -> None:
    """Also where a log says less than the store has taken."""
    assert taken(end) is None


def test_silence_that_moves_the_watermark_is_an_epoch_without_events() -> None:
    heard = StreamState(FLOW, REACHED, REACHED, 1, (100 * SECOND, 0), None, None)
    silent = 99 * SECOND
    assert next_epoch(heard, HERE, PaceDefinition(), 100, 100, silent - 50 * SECOND) is None
    assert next_epoch(heard, HERE, PaceDefinition(), 100, 100, silent) == to(4, 2)


def test_above_its_lag_a_stream_goes_to_the_end_and_takes_a_share() -> None:
    assert taken(Position((14, 4)), SHED, limit=1) == to(14, 4, shedding=Shedding("oldest", 0.5))


def test_up_to_its_lag_a_stream_sheds_nothing() -> None:
    assert taken(Position((9, 3)), SHED) == to(9, 3)


def test_the_limit_doubles_while_epochs_are_full() -> None:
    assert [limit_after(taken, 10, 35) for taken in (3, 10, 11)] == [10, 20, 20]
    assert limit_after(20, 20, 35) == 35
