"""The alternatives, each run as `python -m bench.sides NAME EVENTS OUT`: prints one JSON line
with its times.

A side ends with the same file: rows (url, hour in microseconds, hits, ms, slowest) as Parquet.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import duckdb

from bench.data import SCHEMA

# Large batches suit it best here; reading twice was faster than keeping a batch in memory.
FILES_A_BATCH = 16


def duck(events: Path, out: Path) -> dict[str, float]:
    """DuckDB, in batch."""
    began = time.monotonic()
    columns = "{'user': 'VARCHAR', 'url': 'VARCHAR', 'ts': 'TIMESTAMP', 'ms': 'BIGINT'}"
    duckdb.sql(f"""
        COPY (SELECT url, epoch_us(time_bucket(INTERVAL 1 HOUR, ts)) AS hour, count(*) AS hits,
                     sum(ms)::BIGINT AS ms, max(ms) AS slowest
              FROM read_json('{events}/*.json', format = 'newline_delimited', columns = {columns})
              GROUP BY ALL) TO '{out}' (FORMAT parquet)
    """)
    return {"work": time.monotonic() - began}


def spark_state(events: Path, out: Path) -> dict[str, float]:
    """Structured Streaming with Spark's own state, and a second query that appends the events."""
    spark = _session()
    began = time.monotonic()
    view: dict[Any, Any] = {}

    def keep(frame: Any, _batch: int) -> None:
        for row in frame.collect():
            view[row[0], row[1]] = row[2:]

    source = _source(spark, events)
    keeps = (
        _grouped(source.withWatermark("ts", "10 minutes"))
        .writeStream.outputMode("update")
        .foreachBatch(keep)
        .option("checkpointLocation", f"{out}.state")
        .trigger(availableNow=True)
        .start()
    )
    appends = (
        _source(spark, events)
        .writeStream.format("parquet")
        .option("path", f"{out}.events")
        .option("checkpointLocation", f"{out}.append")
        .trigger(availableNow=True)
        .start()
    )
    keeps.awaitTermination()
    appends.awaitTermination()
    return _finish(spark, view, out, began)


def spark_partials(events: Path, out: Path) -> dict[str, float]:
    """Structured Streaming, one read for both: partial aggregates merged by hand, events
    appended.
    """
    spark = _session()
    began = time.monotonic()
    view: dict[Any, Any] = {}

    def keep(frame: Any, _batch: int) -> None:
        frame.write.mode("append").parquet(f"{out}.events")
        for url, hour, hits, ms, slowest in _grouped(frame).collect():
            old = view.get((url, hour), (0, 0, 0))
            view[url, hour] = (old[0] + hits, old[1] + ms, max(old[2], slowest))

    query = (
        _source(spark, events)
        .writeStream.foreachBatch(keep)
        .option("checkpointLocation", f"{out}.partials")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return _finish(spark, view, out, began)


def _session() -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    return (
        SparkSession.builder.master("local[*]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


def _source(spark: Any, events: Path) -> Any:
    return (
        spark.readStream.schema(SCHEMA)
        .option("maxFilesPerTrigger", FILES_A_BATCH)
        .json(str(events))
    )


def _grouped(frame: Any) -> Any:
    from pyspark.sql import functions as f

    grouped = frame.groupBy("url", f.window("ts", "1 hour").alias("w"))
    totals = grouped.agg(
        f.count("*").alias("hits"), f.sum("ms").alias("ms"), f.max("ms").alias("slowest")
    )
    return totals.select(
        "url", f.unix_micros(f.col("w.start")).alias("hour"), "hits", "ms", "slowest"
    )


def _finish(spark: Any, view: dict[Any, Any], out: Path, began: float) -> dict[str, float]:
    work = time.monotonic() - began
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [(*key, *values) for key, values in view.items()]
    names = ["url", "hour", "hits", "ms", "slowest"]
    pq.write_table(pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))), out)
    spark.stop()
    return {"work": work}


SIDES = {"duckdb": duck, "spark-state": spark_state, "spark-partials": spark_partials}

if __name__ == "__main__":
    name, events, out = sys.argv[1:]
    print(json.dumps(SIDES[name](Path(events), Path(out))))
