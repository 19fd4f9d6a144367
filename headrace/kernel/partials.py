"""The records of one log partition -> the partials of all views that the kernel computes.

For each view and all records r of a partition, `compute_partials` gives the rows that Spark SQL
gives for `partial_sql` over r. Rows of one key from several partitions are merged by whoever reads
them, like those of several epochs. tests/laws/test_kernel.py compares both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from headrace.core.event import ARRIVED_AT, LATE, STATUS, EventStatus
from headrace.define.definitions import Watermark
from headrace.kernel.engine import run_kernel

_MICROS = pa.timestamp("us")


@dataclass(frozen=True, slots=True)
class KernelJob:
    """What is computed of events; it travels to the executors."""

    stream: str
    queries: Mapping[str, str]  # DuckDB's SQL, by names that the caller chooses
    tables: Mapping[str, pa.Table] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartitionPartials:
    """What the records of one partition give."""

    partition: int
    counts: tuple[int, int, int, int]  # events, late, duplicates, dead letters
    high_us: int | None  # the highest event time that moves the watermark
    low_us: int | None  # the earliest event time
    rows: Mapping[str, pa.Table]


def compute_partials(
    job: KernelJob, watermark: Watermark | None, partition: int, records: pa.Table
) -> PartitionPartials:
    """The counts and partials of records of every status."""
    records = without_zone(records)
    status = records[STATUS]
    events = records.filter(pc.equal(status, int(EventStatus.EVENT)))
    return PartitionPartials(
        partition,
        (
            events.num_rows,
            pc.sum(records[LATE]).as_py() or 0,
            _count(status, EventStatus.DUPLICATE),
            _count(status, EventStatus.DEAD_LETTER),
        ),
        *_times(watermark, records),
        run_queries(job, events),
    )


def run_queries(job: KernelJob, events: pa.Table) -> dict[str, pa.Table]:
    """The results over these events, whose times are without a zone."""
    relations = {job.stream: events, **job.tables}
    return {name: run_kernel(sql, relations) for name, sql in job.queries.items()}


def _count(status: pa.ChunkedArray, wanted: EventStatus) -> int:
    return int(pc.sum(pc.equal(status, int(wanted))).as_py() or 0)


def _times(mark: Watermark | None, records: pa.Table) -> tuple[int | None, int | None]:
    """The highest event time that moves the watermark, and the lowest."""
    if mark is None:
        return None, None
    times, arrived = records[mark.column].cast(pa.int64()), records[ARRIVED_AT].cast(pa.int64())
    moving = pc.less_equal(times, pc.add(arrived, mark.ahead_us))
    return pc.max(times.filter(moving)).as_py(), pc.min(times).as_py()


def without_zone(table: pa.Table) -> pa.Table:
    """Times as microseconds without a zone, which is how the kernel's SQL reads a TIMESTAMP."""
    fields = [
        field.with_type(_MICROS) if pa.types.is_timestamp(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))
