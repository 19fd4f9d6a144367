"""The kernel in tasks of Spark: over a range of the log, or over a range of the master.

A task reads its part once, runs all queries over it, and returns nothing but their results, so no
rows of events cross into the JVM, and no plan is analysed. Rows of one key from several tasks are
merged by who stores or reads them. tests/spark/test_kernel_job.py runs both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa

from headrace.core.shedding import Shedding
from headrace.kernel.partials import (
    KernelJob,
    PartitionPartials,
    compute_partials,
    run_queries,
    without_zone,
)
from headrace.log.interval import LogInterval
from headrace.master.parquet import verify_files
from headrace.master.part import MasterPart
from headrace.spark.log_range import decoded_tables

P = TypeVar("P")
R = TypeVar("R")


def run_over_log(
    spark: Any,
    job: KernelJob,
    parts: Sequence[LogInterval],
    tables: Mapping[str, Any],
    shedding: Shedding | None = None,
) -> list[PartitionPartials]:
    """What the kernel makes of each part; `tables` are broadcast."""

    def run(part: LogInterval) -> PartitionPartials:
        nothing = part.decoder.arrow_schema(raw=False).empty_table()
        records = pa.concat_tables([nothing, *decoded_tables(part, False, shedding)])
        return compute_partials(_with(job, tables), part.decoder.watermark, part.partition, records)

    return _run(spark, run, parts)


def run_over_master(
    spark: Any, job: KernelJob, parts: Sequence[MasterPart], tables: Mapping[str, Any]
) -> dict[str, pa.Table]:
    """The results of the queries over all parts; a key may have several rows."""

    def run(part: MasterPart) -> dict[str, pa.Table]:
        whole = _with(job, tables)
        return _concatenated([run_queries(whole, without_zone(rows)) for rows in part.tables()])

    try:
        return _concatenated(_run(spark, run, parts))
    except Exception:
        # A damaged file is named by its own error, and not by that of a task.
        verify_files(file for part in parts for file in part.files)
        raise


def _run(spark: Any, run: Callable[[P], R], parts: Sequence[P]) -> list[R]:
    return list(spark.sparkContext.parallelize(parts, len(parts)).map(run).collect())


def _with(job: KernelJob, tables: Mapping[str, Any]) -> KernelJob:
    return replace(job, tables={name: sent.value for name, sent in tables.items()})


def _concatenated(results: Sequence[Mapping[str, pa.Table]]) -> dict[str, pa.Table]:
    return {name: pa.concat_tables([each[name] for each in results]) for name in results[0]}
