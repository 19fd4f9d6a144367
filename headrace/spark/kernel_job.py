"""The kernel over a range of the log: one Spark job for all views, a task for each log partition.

A task reads and decodes its part once, computes the partials of all views from it, and returns
nothing else, so no rows of events cross into the JVM. tests/spark/test_kernel_job.py runs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from headrace.core.shedding import Shedding
from headrace.kernel.partials import KernelJob, PartitionPartials, compute_partials
from headrace.log.interval import LogInterval
from headrace.spark.log_range import decoded_tables


def run_kernel_job(
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
        rows = {name: sent.value for name, sent in tables.items()}
        return compute_partials(replace(job, tables=rows), part.partition, records)

    found = spark.sparkContext.parallelize(parts, len(parts)).map(run).collect()
    return list(found)
