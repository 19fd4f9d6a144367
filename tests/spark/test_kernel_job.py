"""The kernel over a range of the log, and of the master, in tasks of Spark."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.compile.plan import ColumnPlan, StreamPlan
from headrace.core.errors import CorruptMaster
from headrace.core.event import EventStatus
from headrace.core.position import Position, PositionRange
from headrace.core.shedding import Shedding
from headrace.core.time import SECOND, iso
from headrace.kernel.partials import KernelJob, PartitionPartials
from headrace.log.embedded.writer import EmbeddedWriter
from headrace.log.interval import log_intervals
from headrace.log.opening import open_reader
from headrace.master.archive import Archive
from headrace.master.decoding import decoder_of
from headrace.spark import feed as feed_module
from headrace.spark.feed import Feed
from headrace.spark.kernel_job import run_over_log, run_over_master

ARRIVED_AT = 1_000_000 * SECOND
CLICKS = StreamPlan(
    "clicks",
    (ColumnPlan("user", "STRING", True), ColumnPlan("ts", "TIMESTAMP", True)),
    "json",
    2,
    watermark=("ts", 10 * SECOND),
    ahead_us=60 * SECOND,
)
VIEWS = {
    "users": "SELECT user, count(*) AS n, max(epoch_us(ts)) AS last FROM clicks GROUP BY user",
    "named": "SELECT name, count(*) AS n FROM clicks JOIN names USING (user) GROUP BY name",
}


@pytest.fixture
def topic(tmp_path: Path) -> Iterator[EmbeddedWriter]:
    path = tmp_path / "log" / "clicks"
    made = EmbeddedWriter.open(path, 2, segment_bytes_max=1 << 20, clock=lambda: ARRIVED_AT)
    yield made
    made.close()


def click(user: str, second: int) -> bytes:
    return json.dumps({"user": user, "ts": iso(second * SECOND)}).encode()


def append(topic: EmbeddedWriter, partition: int, *records: bytes, statuses: bytes = b"") -> None:
    topic.append(partition, records, statuses or bytes(len(records))).result(timeout=20)


def run(
    spark: Any, topic: EmbeddedWriter, shedding: Shedding | None = None
) -> dict[int, PartitionPartials]:
    range = PositionRange(Position((0, 0)), topic.end())
    parts = log_intervals(open_reader(topic.address), decoder_of(CLICKS), range, (None, None))
    names = pa.table({"user": ["ada", "bob"], "name": ["Ada", "Bob"]})
    tables = {"names": spark.sparkContext.broadcast(names)}
    job = KernelJob("clicks", VIEWS)
    return {part.partition: part for part in run_over_log(spark, job, parts, tables, shedding)}


def test_each_partition_gives_its_counts_times_and_partials(
    spark: Any, topic: EmbeddedWriter
) -> None:
    # The second click is late, the third a duplicate, the fourth of a wrong clock, the last broken.
    clicks = [("ada", 100), ("bob", 50), ("bob", 50), ("cyd", 2_000_000)]
    statuses = bytes([0, 0, EventStatus.DUPLICATE, 0, 0])
    append(topic, 0, *(click(*each) for each in clicks), b"{", statuses=statuses)
    append(topic, 1, click("ada", 7))
    found = run(spark, topic)
    assert found[0].counts == (3, 1, 1, 1)
    assert (found[0].high_us, found[0].low_us) == (100 * SECOND, 50 * SECOND)
    assert found[1].counts == (1, 0, 0, 0)
    users = {row["user"]: (row["n"], row["last"]) for row in found[0].rows["users"].to_pylist()}
    assert users == {
        "ada": (1, 100 * SECOND), "bob": (1, 50 * SECOND), "cyd": (1, 2_000_000 * SECOND),
    }  # fmt: skip
    assert found[1].rows["named"].to_pylist() == [{"name": "Ada", "n": 1}]


def test_what_is_shed_is_not_counted_but_moves_the_watermark(
    spark: Any, topic: EmbeddedWriter
) -> None:
    append(topic, 0, *(click("ada", second) for second in range(1, 101)))
    part = run(spark, topic, Shedding("random", 0.5))[0]
    assert part.high_us == 100 * SECOND
    assert 10 < part.counts[0] < 90
    assert part.rows["users"].to_pylist()[0]["n"] == part.counts[0]


def archived(spark: Any, topic: EmbeddedWriter, master: Path) -> Feed:
    archive = Archive(spark, CLICKS, topic.address, master)
    archive.step_to_end(events_max=60)
    return Feed(CLICKS, topic.address, archive.table)


def over_master(spark: Any, feed: Feed, range: PositionRange) -> dict[str, int]:
    names = pa.table({"user": ["ada", "bob"], "name": ["Ada", "Bob"]})
    tables = {"names": spark.sparkContext.broadcast(names)}
    parts = feed.master_parts(range, {"user", "ts"})
    assert len(parts) == 1 or len(range) > 2
    found = run_over_master(spark, KernelJob("clicks", VIEWS), parts, tables)
    total: Counter[str] = Counter()
    for row in found["named"].to_pylist():
        total[row["name"]] += row["n"]
    return total


def test_the_events_of_a_wantedof_the_master_count_once(
    spark: Any, topic: EmbeddedWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "PART_ROWS", 20)
    append(topic, 0, *(click("ada", second) for second in range(1, 101)), b"{")
    append(topic, 1, click("bob", 7), click("cyd", 8))
    feed = archived(spark, topic, tmp_path / "master")
    wanted = PositionRange(Position((10, 0)), Position((101, 2)))
    assert over_master(spark, feed, wanted) == {"Ada": 90, "Bob": 1}
    assert over_master(spark, feed, PositionRange(wanted.upper, wanted.upper)) == {}


def test_a_damaged_file_of_the_master_is_named_by_its_own_error(
    spark: Any, topic: EmbeddedWriter, tmp_path: Path
) -> None:
    append(topic, 0, click("ada", 1))
    feed = archived(spark, topic, tmp_path / "master")
    [file] = feed.table.newest().files
    Path(file.path).write_bytes(b"PAR1")
    with pytest.raises(CorruptMaster, match="its checksum does not match"):
        over_master(spark, feed, PositionRange(Position((0, 0)), Position((1, 0))))
