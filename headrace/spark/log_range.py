"""A range of the log as a DataFrame with typed columns: one task for each partition of the log.

One log partition is one task, because lateness is decided in the log's own order, from the highest
event time before the range. The task reads and decodes its records itself (`mapInArrow` over one
row per partition), so Spark plans nothing in Python and keeps no process for a stream. Shed events
are decoded too, because lateness and watermark must not depend on shedding.
tests/spark/test_log_range.py reads a log through it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.core.event import OFFSET, RAW, SHED, STATUS, EventStatus
from headrace.core.shedding import Shedding
from headrace.log.decode import Decoder
from headrace.log.interval import LogInterval

BATCH_EVENTS = 65_536


def log_frame(
    spark: Any, parts: Sequence[LogInterval], schema: pa.Schema, shedding: Shedding | None = None
) -> Any:
    """The records of these parts, of every status. Spark does not know their number in advance."""
    from pyspark.sql.pandas.types import from_arrow_schema

    raw, typed = RAW in schema.names, from_arrow_schema(schema, prefer_timestamp_ntz=True)

    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in (each.as_py() for batch in numbers for each in batch[0]):
            for table in decoded_tables(parts[number], raw, shedding):
                yield from table.to_batches(max_chunksize=BATCH_EVENTS)

    if not parts:
        # From Arrow, so that Spark knows that it is empty and runs no job.
        return spark.createDataFrame(schema.empty_table(), typed)
    return spark.range(0, len(parts), 1, len(parts)).mapInArrow(read, typed)


def decoded_tables(part: LogInterval, raw: bool, shedding: Shedding | None) -> Iterator[pa.Table]:
    if shedding is None:
        yield from (decoded.table for decoded in part.decoded(raw=raw))
    elif decoded := list(part.decoded(raw=raw)):
        whole = pa.concat_tables(each.table for each in decoded)
        yield _without_shed(whole, decoded[-1].high_us, part, shedding)


def _without_shed(
    table: pa.Table, high_us: int | None, part: LogInterval, shedding: Shedding
) -> pa.Table:
    """The rows without the shed events. If one of those has the highest event time, it is kept with
    the status `SHED`, for the watermark.
    """
    events = table[STATUS].to_numpy() == int(EventStatus.EVENT)
    taken = shedding.takes(part.partition, part.offsets, table[OFFSET].to_numpy())
    kept = table.filter(pa.array(taken | ~events))
    time = _time(part.decoder)
    if time is None or high_us is None:
        return kept
    times = table[time].combine_chunks().view(pa.int64()).fill_null(-1).to_numpy()
    highest = np.flatnonzero(events & ~taken & (times == high_us))[:1]
    mark = table.take(pa.array(highest))
    status = table.schema.get_field_index(STATUS)
    shed = pa.array([SHED] * len(mark), pa.int8())
    return pa.concat_tables([kept, mark.set_column(status, table.schema.field(status), shed)])


def _time(decoder: Decoder) -> str | None:
    """The name of the event time column, as the stream declares it."""
    column = decoder.schema.find(decoder.watermark.column) if decoder.watermark else None
    return column.name if column else None
