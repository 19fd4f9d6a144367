"""A live log read by a streaming query: each event once, at its position, with its late mark.

The store is the one that the query's progress is kept in: the source asks it for the highest event
times that a batch starts from.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace.compile.plan import ColumnPlan, Plan, StreamPlan
from headrace.core.event import SHED, Status
from headrace.core.position import Position
from headrace.core.time import SECOND, iso
from headrace.define.definitions import Pace
from headrace.log.embedded.writer import EmbeddedWriter
from headrace.master.decoding import decoder_of
from headrace.serving.sqlite_store import SqliteStore
from headrace.spark.source import FORMAT, LogSource, LogStreamReader

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


@dataclass
class Live:
    """A topic, its store, and the query that reads it."""

    spark: Any
    folder: Path
    topic: EmbeddedWriter
    store: SqliteStore

    def append(self, partition: int, *records: bytes, status: Status = Status.EVENT) -> None:
        self.topic.append(partition, records, bytes([status] * len(records))).result(timeout=20)

    def read(
        self,
        start: str = "0,0",
        *,
        events_max: int = 1_000,
        columns: str = "user,ts",
        each: Callable[[int], None] = lambda number: None,
    ) -> list[list[dict[str, Any]]]:
        """The batches of a query from `start` to the log's end; `each` is called after one."""
        batches: list[list[dict[str, Any]]] = []

        def take(frame: Any, number: int) -> None:
            rows = [row.asDict() for row in frame.collect()]
            batches.append(sorted(rows, key=lambda row: (row["_partition"], row["_offset"])))
            each(number)

        frame = (
            self.spark.readStream.format(FORMAT)
            .option("log", str(self.topic.address))
            .option("stream", msgspec.json.encode(CLICKS).decode())
            .option("columns", columns)
            .option("start", start)
            .option("events_max", events_max)
            .option("store", str(self.store.path))
            .option("flow", "clicks")
            .option("number", 0)
            .load()
        )
        checkpoint = self.folder / f"checkpoint-{start}-{events_max}-{columns}"
        writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint))
        query = writer.trigger(availableNow=True).start()
        try:
            assert query.awaitTermination(300), "the query did not end"
        finally:
            query.stop()
        return batches


@pytest.fixture
def live(spark: Any, tmp_path: Path) -> Iterator[Live]:
    session = spark.newSession()
    session.dataSource.register(LogSource)
    path = tmp_path / "log" / "clicks"
    topic = EmbeddedWriter.open(path, 2, segment_bytes_max=1 << 20, clock=lambda: ARRIVED_AT)
    store = SqliteStore(tmp_path / "serving.db")
    store.take_over()
    store.deploy(Plan("shop", (CLICKS,), (), (), ()))
    yield Live(session, tmp_path, topic, store)
    topic.close()
    store.close()


def places(batch: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(row["_partition"], row["_offset"]) for row in batch]


def test_every_record_is_read_once_with_its_place_status_and_late_mark(live: Live) -> None:
    live.append(0, click("a", 100), b"not json", click("b", 90), click("c", 89), click("d", 101))
    live.append(1, click("e", 1))
    live.append(1, click("e", 1), status=Status.DUPLICATE)
    (batch,) = live.read()
    assert places(batch) == [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 0), (1, 1)]
    event, dead, duplicate = Status.EVENT, Status.DEAD_LETTER, Status.DUPLICATE
    assert [(row["user"], row["_status"], row["_late"]) for row in batch] == [
        ("a", event, False),
        (None, dead, False),
        ("b", event, False),  # exactly the delay behind
        ("c", event, True),
        ("d", event, False),
        ("e", event, False),  # the other partition has its own newest
        (None, duplicate, False),
    ]
    assert {row["_arrived_at"].timestamp() for row in batch} == {ARRIVED_AT / SECOND}
    assert [bool(row["_reason"]) for row in batch] == [False, True, *[False] * 5]


def test_query_begins_where_the_store_is_and_takes_only_its_columns(live: Live) -> None:
    live.append(0, click("a", 100), click("b", 89), click("c", 90))
    live.append(1, click("d", 1))
    with live.store.write() as db:
        sql = "UPDATE _progress SET next_offset = 1, high_us = ?"
        db.execute(sql, (100 * SECOND,))
    (batch,) = live.read("1,1", columns="user")
    # Late is told by the store's highest time, which no event of this batch has.
    assert [(row["user"], row["_offset"], row["_late"]) for row in batch] == [
        ("b", 1, True),
        ("c", 2, False),
    ]
    assert "ts" not in batch[0]


def test_batch_keeps_to_its_limit_and_the_query_to_the_end_that_it_met(live: Live) -> None:
    live.append(0, *(click("a", n) for n in range(5)))
    live.append(1, click("b", 1))
    batches = live.read(events_max=4, each=lambda number: live.append(1, click("new", number)))
    # Two of each partition that has any, then what is left; what came meanwhile waits.
    assert [places(batch) for batch in batches] == [
        [(0, 0), (0, 1), (1, 0)],
        [(0, 2), (0, 3), (0, 4)],
    ]
    assert live.topic.end() == Position((5, 3))


def test_reader_hands_out_one_part_for_each_partition_with_events(live: Live) -> None:
    live.append(0, click("a", 1), click("a", 2))
    source = LogSource(
        {
            "log": str(live.topic.address),
            "stream": msgspec.json.encode(CLICKS).decode(),
            "columns": "user",
            "start": "0,0",
            "events_max": "10",
            "store": str(live.store.path),
            "flow": "clicks",
            "number": "0",
        }
    )
    reader = source.streamReader(source.schema())
    assert isinstance(reader, LogStreamReader)
    assert reader.initialOffset() == {"position": "0,0"}
    end = reader.latestOffset({"position": "1,0"}, reader.getDefaultReadLimit())
    assert end == {"position": "2,0"}
    (part,) = reader.partitions({"position": "1,0"}, end)
    assert (part.partition, part.interval.lower, part.interval.upper) == (0, 1, 2)
    (rows,) = [batch.to_pylist() for batch in reader.read(part)]
    assert [(row["user"], row["_offset"]) for row in rows] == [("a", 1)]


@pytest.fixture
def topic(tmp_path: Path) -> Iterator[EmbeddedWriter]:
    """A log whose partition 0 has ten events, the seventh the newest; 1 has other kinds."""
    path = tmp_path / "log" / "clicks"
    made = EmbeddedWriter.open(path, 2, segment_bytes_max=1 << 20, clock=lambda: ARRIVED_AT)
    records = [click("a", 200 if n == 6 else 100 + n) for n in range(10)]
    made.append(0, records, bytes(10)).result(20)
    made.append(1, [b"not json", click("a", 1)], bytes([0, Status.DUPLICATE])).result(20)
    yield made
    made.close()


def reader_of(topic: EmbeddedWriter, overload: str, lag_events_max: int = 6) -> LogStreamReader:
    store = SqliteStore(topic.path.parents[1] / "serving.db")
    store.take_over()
    store.deploy(Plan("shop", (CLICKS,), (), (), ()))
    store.close()
    pace = Pace(overload=overload, lag_events_max=lag_events_max)
    start, path = Position((0, 0)), topic.path.parents[1] / "serving.db"
    columns, flow = ["user", "ts"], CLICKS.name
    return LogStreamReader(
        topic.address, decoder_of(CLICKS), start, columns, 100, path, pace, flow, 0, raw=False
    )


def shed_rows(reader: LogStreamReader, end: dict[str, str]) -> list[dict[str, Any]]:
    parts = reader.partitions({"position": "0,0"}, end)
    return [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]


def test_above_its_lag_a_batch_goes_to_the_end_and_its_offset_says_what_it_takes(
    topic: EmbeddedWriter,
) -> None:
    reader = reader_of(topic, "shed oldest")
    end = reader.latestOffset({"position": "0,0"}, reader.getDefaultReadLimit())
    assert end == {"position": "10,2", "shed": "oldest 0.5"}
    rows = shed_rows(reader, end)
    # Of partition 0 the newest five. The dead letter and the duplicate are no events to be shed.
    assert sorted((r["_partition"], r["_offset"]) for r in rows if r["_status"] != SHED) == [
        (0, 5), (0, 6), (0, 7), (0, 8), (0, 9), (1, 0), (1, 1),
    ]  # fmt: skip
    assert shed_rows(reader, end) == rows


def test_the_newest_event_stays_for_the_watermark_and_lateness_is_that_of_the_whole(
    topic: EmbeddedWriter,
) -> None:
    reader = reader_of(topic, "shed oldest")
    rows = shed_rows(reader, {"position": "10,2", "shed": "oldest 0.3"})
    (mark,) = [row for row in rows if row["_status"] == SHED]
    assert (mark["_offset"], mark["ts"].timestamp()) == (6, 200)
    # Late against the seventh event, which was not taken.
    late = {row["_offset"]: row["_late"] for row in rows if row["_partition"] == 0}
    assert late == {6: False, 7: True, 8: True, 9: True}


def test_up_to_its_lag_a_stream_sheds_nothing(topic: EmbeddedWriter) -> None:
    reader = reader_of(topic, "shed random", lag_events_max=12)
    limit = reader.getDefaultReadLimit()
    assert reader.latestOffset({"position": "0,0"}, limit) == {"position": "10,2"}


def test_an_offset_without_news_stays_the_same_also_after_shedding(topic: EmbeddedWriter) -> None:
    reader = reader_of(topic, "shed random")
    before = {"position": "10,2", "shed": "random 0.5"}
    assert reader.latestOffset(before, reader.getDefaultReadLimit()) == before
