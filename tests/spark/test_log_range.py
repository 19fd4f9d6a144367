"""A range of the log as Spark reads it: each record once, at its place, with its late mark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from headrace.compile.plan import ColumnPlan, StreamPlan
from headrace.core.event import SHED, EventStatus
from headrace.core.position import Position, PositionRange
from headrace.core.shedding import Shedding
from headrace.core.time import SECOND, iso
from headrace.log.embedded.writer import EmbeddedWriter
from headrace.log.interval import log_intervals
from headrace.log.opening import open_reader
from headrace.master.decoding import decoder_of
from headrace.spark.log_range import log_frame

ARRIVED_AT = 1_000_000 * SECOND
CLICKS = StreamPlan(
    "clicks",
    (ColumnPlan("user", "STRING", True), ColumnPlan("ts", "TIMESTAMP", True)),
    "json",
    2,
    watermark=("ts", 10 * SECOND),
)


def click(user: str, second: int) -> bytes:
    return json.dumps({"user": user, "ts": iso(second * SECOND)}).encode()


Rows = list[dict[str, Any]]


@pytest.fixture
def topic(tmp_path: Path) -> Iterator[EmbeddedWriter]:
    path = tmp_path / "log" / "clicks"
    made = EmbeddedWriter.open(path, 2, segment_bytes_max=1 << 20, clock=lambda: ARRIVED_AT)
    yield made
    made.close()


def append(
    topic: EmbeddedWriter, partition: int, *records: bytes, status: EventStatus = EventStatus.EVENT
) -> None:
    topic.append(partition, records, bytes([status] * len(records))).result(timeout=20)


def read(
    spark: Any,
    topic: EmbeddedWriter,
    lower: tuple[int, int] = (0, 0),
    highs: Sequence[int | None] = (None, None),
    shedding: Shedding | None = None,
) -> Rows:
    """What is between a position and the log's end."""
    range = PositionRange(Position(lower), topic.end())
    decoder = decoder_of(CLICKS)
    parts = log_intervals(open_reader(topic.address), decoder, range, highs)
    frame = log_frame(spark, parts, decoder.arrow_schema(raw=False), shedding)
    rows = [row.asDict() for row in frame.collect()]
    return sorted(rows, key=lambda row: (row["_partition"], row["_offset"]))


def places(rows: Rows) -> list[tuple[int, int]]:
    return [(row["_partition"], row["_offset"]) for row in rows]


def test_every_record_is_read_once_with_its_place_status_and_late_mark(
    spark: Any, topic: EmbeddedWriter
) -> None:
    records = click("a", 100), b"not json", click("b", 90), click("c", 89), click("d", 101)
    append(topic, 0, *records)
    append(topic, 1, click("e", 1))
    append(topic, 1, click("e", 1), status=EventStatus.DUPLICATE)
    rows = read(spark, topic)
    assert places(rows) == [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 0), (1, 1)]
    event, dead, duplicate = EventStatus.EVENT, EventStatus.DEAD_LETTER, EventStatus.DUPLICATE
    assert [(row["user"], row["_status"], row["_late"]) for row in rows] == [
        ("a", event, False),
        (None, dead, False),
        ("b", event, False),  # exactly the delay behind
        ("c", event, True),
        ("d", event, False),
        ("e", event, False),  # the other partition has its own newest
        (None, duplicate, False),
    ]
    assert {row["_arrived_at"].timestamp() for row in rows} == {ARRIVED_AT / SECOND}
    assert [bool(row["_reason"]) for row in rows] == [False, True, *[False] * 5]


def test_a_range_begins_with_the_highest_times_that_it_is_given(
    spark: Any, topic: EmbeddedWriter
) -> None:
    append(topic, 0, click("a", 100), click("b", 89), click("c", 90))
    append(topic, 1, click("d", 1))
    rows = read(spark, topic, (1, 1), (100 * SECOND, None))
    assert [(row["user"], row["_offset"], row["_late"]) for row in rows] == [
        ("b", 1, True),
        ("c", 2, False),
    ]


def test_an_empty_range_runs_no_job(spark: Any, topic: EmbeddedWriter) -> None:
    spark.sparkContext.setJobGroup("empty range", "")
    try:
        assert read(spark, topic) == []
        assert spark.sparkContext.statusTracker().getJobIdsForGroup("empty range") == []
    finally:
        spark.sparkContext.setJobGroup("", "")


def append_ten(topic: EmbeddedWriter) -> None:
    """Partition 0 gets ten events, the seventh the newest; 1 other kinds."""
    append(topic, 0, *(click("a", 200 if n == 6 else 100 + n) for n in range(10)))
    topic.append(1, [b"not json", click("a", 1)], bytes([0, EventStatus.DUPLICATE])).result(20)


def test_the_events_that_are_shed_are_left_out_and_nothing_else(
    spark: Any, topic: EmbeddedWriter
) -> None:
    append_ten(topic)
    rows = read(spark, topic, shedding=Shedding("oldest", 0.5))
    # Of partition 0 the newest five. The dead letter and the duplicate are no events to be shed.
    assert places([row for row in rows if row["_status"] != SHED]) == [
        (0, 5), (0, 6), (0, 7), (0, 8), (0, 9), (1, 0), (1, 1),
    ]  # fmt: skip


def test_the_newest_event_stays_for_the_watermark_and_lateness_is_that_of_the_whole(
    spark: Any, topic: EmbeddedWriter
) -> None:
    append_ten(topic)
    rows = read(spark, topic, shedding=Shedding("oldest", 0.3))
    (mark,) = [row for row in rows if row["_status"] == SHED]
    assert (mark["_offset"], mark["ts"].timestamp()) == (6, 200)
    # Late against the seventh event, which was not taken.
    late = {row["_offset"]: row["_late"] for row in rows if row["_partition"] == 0}
    assert late == {6: False, 7: True, 8: True, 9: True}
