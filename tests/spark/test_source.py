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

from headrace.compile.plan import Plan, StreamPlan
from headrace.core.event import Status
from headrace.core.position import Position
from headrace.core.time import SECOND, iso
from headrace.log.topic import Topic
from headrace.serving.sqlite_store import SqliteStore
from headrace.spark.source import FORMAT, LogSource, LogStreamReader

ARRIVED_AT = 1_000_000 * SECOND
CLICKS = StreamPlan(
    "clicks",
    (("user", "STRING", True), ("ts", "TIMESTAMP", True)),
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
    topic: Topic
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
            .option("log", str(self.topic.path))
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
            assert query.awaitTermination(60), "the query did not end"
        finally:
            query.stop()
        return batches


@pytest.fixture
def live(spark: Any, tmp_path: Path) -> Iterator[Live]:
    session = spark.newSession()
    session.dataSource.register(LogSource)
    path = tmp_path / "log" / "clicks"
    topic = Topic.open(path, 2, segment_bytes_max=1 << 20, clock=lambda: ARRIVED_AT)
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
    with live.store.db.write() as db:
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
            "log": str(live.topic.path),
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
