"""The alternatives, each run as `python -m bench.sides SIDE WORKLOAD EVENTS OUT`: prints one JSON
line with its time.

A side ends with a Parquet folder or file OUT/VIEW for each view of the workload: its columns, a
window as its start in microseconds. The programs of PySpark are what a programmer would write by
hand for these views, tuned for this machine; all but `spark-view` also keep the events, as Headrace
does.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import duckdb

from bench.data import ads_of
from bench.workloads import SCHEMA, WORKLOADS, View

# Large batches suit it best here; reading twice was faster than keeping a batch in memory.
FILES_A_BATCH = 16
WATERMARK = "10 minutes"
Views = tuple[View, ...]


def duck(views: Views, events: Path, out: Path) -> float:
    """DuckDB, in batch, without keeping the events: what this machine can do at best."""
    columns = "{user: 'VARCHAR', ad: 'VARCHAR', kind: 'VARCHAR', ts: 'TIMESTAMP', ms: 'BIGINT'}"
    began = time.monotonic()
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE ads AS FROM read_csv('{ads_of(events)}')")
    lines = f"read_json('{events}/*.json', format = 'newline_delimited', columns = {columns})"
    kind = "VIEW" if len(views) == 1 else "TABLE"
    connection.execute(f"CREATE {kind} clicks AS FROM {lines}")
    for view in views:
        connection.execute(f"COPY ({view.duck}) TO '{out / view.name}' (FORMAT parquet)")
    return time.monotonic() - began


def spark_view(views: Views, events: Path, out: Path) -> float:
    """PySpark in batch over the lines: keeps the views only."""
    spark = _session()
    began = time.monotonic()
    _tables(spark, events, spark.read.schema(SCHEMA).json(_lines(events)))
    _write_views(spark, views, out)
    return time.monotonic() - began


def spark_batch(views: Views, events: Path, out: Path) -> float:
    """PySpark in batch: writes the events as Parquet, and reads them back for each view."""
    spark = _session()
    began = time.monotonic()
    kept = f"{out}/events"
    spark.read.schema(SCHEMA).json(_lines(events)).write.parquet(kept)
    _tables(spark, events, spark.read.parquet(kept))
    _write_views(spark, views, out)
    return time.monotonic() - began


def spark_state(views: Views, events: Path, out: Path) -> float:
    """Structured Streaming with Spark's own state, and a query beside it that keeps the events."""
    spark = _session()
    began = time.monotonic()
    queries = []
    for view in views:
        _tables(spark, events, _stream(spark, events).withWatermark("ts", WATERMARK))
        changed = spark.sql(view.flat).writeStream.outputMode("update")
        queries.append(_start(changed.foreachBatch(_append(out, view.name)), out, view.name))
    keeps = _stream(spark, events).writeStream.format("parquet").option("path", f"{out}/events")
    queries.append(_start(keeps, out, "events"))
    for query in queries:
        query.awaitTermination()
    for view in views:
        _write_newest(spark, view, out)
    return time.monotonic() - began


def spark_partials(views: Views, events: Path, out: Path) -> float:
    """Structured Streaming, one read for all: partial rows of each micro-batch, merged at the
    end, and the events appended.
    """
    spark = _session()
    began = time.monotonic()

    def keep(frame: Any, batch: int) -> None:
        frame.write.mode("append").parquet(f"{out}/events")
        _tables(frame.sparkSession, events, frame)
        for view in views:
            _append(out, view.name)(frame.sparkSession.sql(view.partial), batch)

    _start(_stream(spark, events).writeStream.foreachBatch(keep), out, "all").awaitTermination()
    for view in views:
        spark.read.parquet(f"{out}/batches/{view.name}").createOrReplaceTempView("partials")
        spark.sql(view.merge).write.parquet(f"{out}/{view.name}")
    return time.monotonic() - began


def _session() -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    return (
        SparkSession.builder.master("local[*]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


def _lines(events: Path) -> str:
    return f"{events}/*.json"


def _stream(spark: Any, events: Path) -> Any:
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", FILES_A_BATCH)
    return reader.json(_lines(events))


def _tables(spark: Any, events: Path, clicks: Any) -> None:
    clicks.createOrReplaceTempView("clicks")
    ads = spark.read.schema("ad STRING, campaign STRING").csv(str(ads_of(events)), header=True)
    ads.createOrReplaceTempView("ads")


def _write_views(spark: Any, views: Views, out: Path) -> None:
    for view in views:
        spark.sql(view.flat).write.parquet(f"{out}/{view.name}")


def _append(out: Path, name: str) -> Any:
    """Keep the rows of a micro-batch with its number."""

    def append(frame: Any, batch: int) -> None:
        from pyspark.sql import functions as f

        rows = frame.withColumn("batch", f.lit(batch))
        rows.write.mode("append").parquet(f"{out}/batches/{name}")

    return append


def _start(writer: Any, out: Path, name: str) -> Any:
    checkpoint = writer.option("checkpointLocation", f"{out}/checkpoints/{name}")
    return checkpoint.trigger(availableNow=True).start()


def _write_newest(spark: Any, view: View, out: Path) -> None:
    """Of each key the row of the last micro-batch that changed it."""
    spark.read.parquet(f"{out}/batches/{view.name}").createOrReplaceTempView("changes")
    keys = [name for name in view.columns if name not in ("n", "ms", "users")]
    values = [name for name in view.columns if name not in keys]
    newest = ", ".join(f"max_by({name}, batch) AS {name}" for name in values)
    by = ", ".join(keys)
    query = spark.sql(f"SELECT {by}, {newest} FROM changes GROUP BY {by}")
    query.write.parquet(f"{out}/{view.name}")


SIDES = {
    "duckdb": duck,
    "spark-view": spark_view,
    "spark-batch": spark_batch,
    "spark-state": spark_state,
    "spark-partials": spark_partials,
}

if __name__ == "__main__":
    side, workload, source, target = sys.argv[1:]
    seconds = SIDES[side](WORKLOADS[workload], Path(source), Path(target))
    print(json.dumps({"work": seconds}))
