"""A log and its master. `InProcess` stands for Spark where only its shipping of tasks is used."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from headrace.compile.plan import ColumnPlan, StreamPlan
from headrace.core.event import EventStatus
from headrace.core.time import SECOND, from_iso, iso
from headrace.log.embedded.writer import EmbeddedWriter
from headrace.master.archive import Archive
from headrace.master.compact import compact
from headrace.master.table import MasterTable

START_US = from_iso("2026-01-01T00:00:00Z")
CLICKS = StreamPlan(
    "clicks",
    (
        ColumnPlan("user", "STRING", False),
        ColumnPlan("ms", "BIGINT", True),
        ColumnPlan("ts", "TIMESTAMP", True),
    ),
    "json",
    2,
    ("ts", 10 * SECOND),
)


class InProcess:
    """`spark.sparkContext.parallelize(tasks, n).map(f).collect()`, here and now."""

    def __init__(self, items: Iterable[Any] = ()) -> None:
        self.items = list(items)

    @property
    def sparkContext(self) -> InProcess:  # noqa: N802
        return self

    def parallelize(self, items: Iterable[Any], _: int) -> InProcess:
        return InProcess(items)

    def map(self, action: Callable[[Any], Any]) -> InProcess:
        return InProcess(map(action, self.items))

    def collect(self) -> list[Any]:
        return self.items


class Clock:
    def __init__(self) -> None:
        self.now_us = START_US

    def __call__(self) -> int:
        return self.now_us


class Bench:
    """A topic of two partitions and the archive that empties it."""

    def __init__(
        self,
        folder: Path,
        spark: Any = None,
        stream: StreamPlan = CLICKS,
        *,
        segment_bytes_max: int = 1 << 20,
        log: Path | None = None,
        master: Path | None = None,
    ) -> None:
        self.clock, log = Clock(), log or folder / "log"
        self.topic = EmbeddedWriter.open(
            log, stream.partitions, segment_bytes_max=segment_bytes_max, clock=self.clock
        )
        self.archive = Archive(
            spark or InProcess(), stream, self.topic.address, master or folder / "master"
        )

    @property
    def table(self) -> MasterTable:
        return self.archive.table

    def send(
        self, partition: int, *records: bytes, status: EventStatus = EventStatus.EVENT
    ) -> None:
        marks = bytes([int(status)]) * len(records)
        self.topic.append(partition, list(records), marks).result()

    def compact(self, files_max: int) -> bool:
        return compact(self.archive.spark, self.table, files_max)

    def rows(self) -> list[dict[str, Any]]:
        """Every row of the newest version with its status and day, in the order of the log."""
        found = [
            row | {"_status": file.status, "_day": file.day}
            for file in self.table.newest().files
            for row in pq.read_table(file.path, partitioning=None).to_pylist()
        ]
        return sorted(found, key=lambda row: (row["_partition"], row["_offset"]))


def click(user: str, second: int = 0, **more: Any) -> bytes:
    return json.dumps({"user": user, "ts": iso(START_US + second * SECOND)} | more).encode()
