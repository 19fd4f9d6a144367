"""How far back speed remembers the streams of a join."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.compile.flow import FlowPlan
from headrace.compile.plan import ColumnPlan, JoinPlan, StreamPlan
from headrace.core.address import LogAddress
from headrace.core.position import Position
from headrace.master.table import MasterTable
from headrace.spark.feed import Feed
from headrace.speed.join_history import BEGINNING, JoinHistory, history_starts

NO_COLUMNS = pa.schema([])
NOWHERE = LogAddress("file", "")


def stream(name: str) -> StreamPlan:
    return StreamPlan(name, (ColumnPlan("ts", "TIMESTAMP", True),), "json", 1, ("ts", 0))


PAIR = FlowPlan("o+p", (stream("o"), stream("p")), joined=True)
SELF = FlowPlan("o+o", (stream("o"),), joined=True)
WITHIN = JoinPlan("o", "p", 0, 30)  # p is up to 30 after o


def test_events_that_an_event_on_time_can_reach_are_kept_with_their_own_partners() -> None:
    # The next payment is dated 100 or later, so it reaches orders since 70; the next order, since
    # 200, reaches payments since 200. An order of 70 must be seen with its payments, since 70.
    assert history_starts(PAIR, [WITHIN], [200, 100], [None, None]) == [70, 70]


def test_a_late_event_asks_for_what_is_further_back() -> None:
    assert history_starts(PAIR, [WITHIN], [200, 100], [None, 40]) == [10, 10]
    assert history_starts(PAIR, [WITHIN], [200, 100], [20, None]) == [-10, 20]


def test_a_stream_without_any_event_may_still_reach_everything() -> None:
    assert history_starts(PAIR, [WITHIN], [200, None], [None, None]) == [BEGINNING, BEGINNING]


def test_the_widest_of_several_joins_decides() -> None:
    wider = JoinPlan("o", "p", -50, 10)
    assert history_starts(PAIR, [WITHIN, wider], [200, 200], [None, None]) == [140, 140]


def test_a_join_of_a_stream_with_itself_is_bounded_on_both_sides() -> None:
    assert history_starts(SELF, [JoinPlan("o", "o", 1, 30)], [100], [None]) == [70]


class Read(JoinHistory):
    """A history that counts how often it reads."""

    reads = 0

    def _read(self, position: Position, since: list[int]) -> list[str]:
        self.reads += 1
        return ["orders", "payments"]


def test_memory_is_read_again_only_for_another_place_or_an_earlier_moment() -> None:
    history = Read(None, PAIR, ())
    here, there = Position((3, 3)), Position((4, 3))
    for position, since in [(here, [5, 5]), (here, [5, 5]), (here, [7, 5]), (here, [5, 4])]:
        history.read(position, since)
    assert history.reads == 2
    history.read(there, [9, 9])
    assert history.reads == 3


def test_memory_is_in_few_partitions_however_many_epochs_there_were(spark: Any) -> None:
    moment = "CAST('2026-01-01' AS TIMESTAMP) AS"
    events = spark.range(8).repartition(4).selectExpr(
        f"{moment} ts", "0 AS _partition", "id AS _offset", f"{moment} _arrived_at",
        "false AS _late", "0L AS _lateness",
    )  # fmt: skip
    history = JoinHistory(
        spark, SELF, (Feed(stream("o"), NOWHERE, MasterTable(Path(), NO_COLUMNS, 1)),)
    )
    history.frames = [events.limit(0)]
    for number in range(1, 4):
        history.append(Position((8 * number,)), [events], [0])
    (kept,) = history.frames
    assert kept.count() == 24
    assert kept.rdd.getNumPartitions() <= spark.sparkContext.defaultParallelism
