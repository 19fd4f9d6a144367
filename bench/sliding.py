"""A 10-minute window that slides by a second, beside one that tumbles, and beside Spark's own.

Headrace runs both views over the same lines, each in a project of its own, from the log until idle:
what an event costs a user. Spark groups typed columns by its own sliding window, which makes 600
rows of each event; it is given fewer events, and its time is scaled by their number. Windows picked
at random must be equal on all sides before a time counts.
"""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
from rich.console import Console

from bench.until_idle import run_until_idle, store_of

KEYS, SIZE, SLIDE, SECONDS, FILES = 20, 600, 1, 3_600, 16
START_US = 1_767_225_600_000_000
SPARK_EVENTS_MAX = 200_000
SAMPLES = 20
WINDOWS = {
    "tumbling": f"window(ts, '{SIZE} seconds')",
    "sliding": f"window(ts, '{SIZE} seconds', '{SLIDE} second')",
}
DEFINITIONS = """
CREATE STREAM clicks (page STRING, ts TIMESTAMP, ms BIGINT, WATERMARK ts DELAY OF INTERVAL 1 MINUTE)
  WITH (key = 'page');
CREATE VIEW v AS SELECT page, {window} AS w, count(*) AS n, sum(ms) AS ms, max(ms) AS slowest
FROM clicks GROUP BY page, {window};
"""


def measure(folder: Path, events: int, console: Console) -> dict[str, Any]:
    """Seconds of each side, and the two ratios."""
    source = folder / "events"
    write_events(source, events)
    seconds = {}
    for name, window in WINDOWS.items():
        definitions = DEFINITIONS.format(window=window)
        seconds[name] = run_until_idle(folder / name, definitions, source)["work"]
    compare(folder / "sliding", source)
    given = min(events, SPARK_EVENTS_MAX)
    own = sparks_own(folder, source, given)
    spark = own * events / given
    numbers = {
        "events": events,
        **seconds,
        "sliding_to_tumbling": seconds["sliding"] / seconds["tumbling"],
        "sparks_own": spark,
        "sparks_own_events": given,
        "sparks_own_to_sliding": spark / seconds["sliding"],
    }
    scaled = f", {own:.1f} s for {given:,} events" if given < events else ""
    console.print(
        f"{events:,} events, {KEYS} keys, windows of {SIZE} s every {SLIDE} s; samples agree: "
        f"sliding {seconds['sliding']:.1f} s, tumbling {seconds['tumbling']:.1f} s "
        f"({numbers['sliding_to_tumbling']:.2f}x), Spark's own sliding {spark:.1f} s{scaled} "
        f"({numbers['sparks_own_to_sliding']:.0f}x)"
    )
    return numbers


def write_events(folder: Path, events: int) -> None:
    """An hour of events, each up to a minute out of order."""
    folder.mkdir(parents=True)
    share = -(-events // FILES)
    for number in range(FILES):
        first, last = number * share, min(events, (number + 1) * share)
        moment = (
            f"make_timestamp({START_US} + i * {SECONDS * 1_000_000} // {events} "
            "+ (hash(i * 3) % 60000000)::BIGINT)"
        )
        duckdb.sql(f"""
            COPY (SELECT 'event-' || i AS event_id, '/page/' || (hash(i * 7) % {KEYS}) AS page,
                         strftime({moment}, '%Y-%m-%dT%H:%M:%S.%fZ') AS ts,
                         (hash(i * 11) % 5000)::BIGINT AS ms
                  FROM range({first}, {last}) t(i))
            TO '{folder}/{number:03d}.json' (FORMAT json)
        """)


def sparks_own(folder: Path, source: Path, events: int) -> float:
    """Seconds of Spark's sliding aggregation, each of its rows computed and thrown away."""
    from bench.sides import _session

    path = folder / "some.parquet"
    duckdb.sql(f"""
        COPY (SELECT page, timezone('UTC', ts::TIMESTAMP) AS ts, ms
              FROM read_json('{source}/*.json') USING SAMPLE {events}) TO '{path}' (FORMAT parquet)
    """)
    spark = _session()
    window = WINDOWS["sliding"]
    try:
        spark.read.parquet(str(path)).createOrReplaceTempView("own")
        spark.sql("SELECT page, count(*) FROM own GROUP BY page").collect()
        began = time.monotonic()
        spark.sql(
            f"SELECT page, {window} AS w, count(*), sum(ms), max(ms) FROM own GROUP BY page, "
            f"{window}"
        ).write.format("noop").mode("overwrite").save()
        return time.monotonic() - began
    finally:
        spark.stop()


def compare(project: Path, source: Path) -> None:
    """Stop unless some windows have the same rows as DuckDB computes."""
    from headrace.core.address import StoreAddress
    from headrace.core.time import iso
    from headrace.serving.opening import open_store
    from headrace.serving.read import Reader

    store = open_store(StoreAddress.of_file(store_of(project)))
    reader, rng = Reader(store.db, seconds_max=600), random.Random(1)
    for _ in range(SAMPLES):
        page, second = f"/page/{rng.randrange(KEYS)}", rng.randrange(1 - SIZE, SECONDS)
        start = START_US + second * 1_000_000
        rows = reader.view("v", {"page": page}, since=iso(start), until=iso(start + 1)).rows
        ours = [(row["n"], row["ms"], row["slowest"]) for row in rows]
        theirs = duckdb.sql(f"""
            SELECT count(*), sum(ms)::BIGINT, max(ms) FROM read_json('{source}/*.json')
            WHERE page = '{page}' AND epoch_us(ts::TIMESTAMP) >= {start}
            AND epoch_us(ts::TIMESTAMP) < {start + SIZE * 1_000_000}
        """).fetchall()
        if ours != [row for row in theirs if row[0]]:
            raise SystemExit(f"window {second} of {page} differs, so no time counts")
    store.close()


if __name__ == "__main__":
    import sys

    with tempfile.TemporaryDirectory() as name:
        measure(Path(name) / "sliding", int(sys.argv[1]), Console())
