"""Python workers of Spark are forked from a process that has imported what tasks need."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa


def test_a_worker_begins_with_the_modules_of_its_tasks(spark: Any) -> None:
    def modules(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = sorted(sys.modules)
        yield from (pa.RecordBatch.from_pylist([{"name": name} for name in names]) for _ in batches)

    loaded = {row.name for row in spark.range(1).mapInArrow(modules, "name string").collect()}
    assert {"pandas", "headrace.spark.log_range", "headrace.master.archive"} <= loaded


def test_a_worker_reads_no_packages_from_archives(spark: Any) -> None:
    def archives(_: int) -> list[str]:
        return [path for path in sys.path_importer_cache if path.endswith((".zip", ".jar"))]

    assert spark.sparkContext.parallelize([0], 1).map(archives).collect() == [[]]


def test_jobs_over_rows_and_over_columns_share_their_workers(spark: Any) -> None:
    def daemon(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from (pa.RecordBatch.from_pylist([{"pid": os.getppid()}]) for _ in batches)

    columns = {row.pid for row in spark.range(2).mapInArrow(daemon, "pid long").collect()}
    rows = set(spark.sparkContext.parallelize([0, 1], 2).map(lambda _: os.getppid()).collect())
    assert len(columns | rows) == 1
