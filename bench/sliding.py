"""A 10-minute window that slides by a second, beside one that tumbles, and beside Spark's own.

Headrace's two views are lifted and stored from the same events, as a full build does it; Spark
groups by its own sliding window, which makes 600 rows of each event. An hour of events and 20 keys
give 120 tumbling windows with rows in the store and at most 72,000 panes, few beside the events: so
the comparison is of what an event costs. Windows picked at random must be equal on all sides before
a time counts. Spark's own may be given fewer events; its time is then scaled by their number.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
from rich.console import Console

KEYS, SIZE, SLIDE, SECONDS = 20, 600, 1, 3_600
START_US = 1_767_225_600_000_000
SPARK_EVENTS_MAX = 200_000
SAMPLES = 20
_SLIDING = f"window(ts, '{SIZE} seconds', '{SLIDE} second')"
_TUMBLING = f"window(ts, '{SIZE} seconds')"
DEFINITIONS = f"""
CREATE STREAM clicks (page STRING, ts TIMESTAMP, ms BIGINT);
CREATE VIEW sliding AS SELECT page, {_SLIDING} AS w, count(*) AS n, sum(ms) AS ms,
  max(ms) AS slowest FROM clicks GROUP BY page, {_SLIDING};
CREATE VIEW tumbling AS SELECT page, {_TUMBLING} AS w, count(*) AS n, sum(ms) AS ms,
  max(ms) AS slowest FROM clicks GROUP BY page, {_TUMBLING};
"""
Rows = list[tuple[Any, ...]]


def measure(folder: Path, events: int, console: Console) -> dict[str, Any]:
    """Seconds of each side, and the two ratios."""
    folder.mkdir(parents=True)
    path = folder / "events.parquet"
    write_events(path, events)
    side = _Headrace(folder, path)
    try:
        # Once before it counts: the first job of a session compiles its code.
        side.build("tumbling")
        times = {
            name: _timed(lambda name=name: side.build(name)) for name in ("tumbling", "sliding")
        }
        given = min(events, SPARK_EVENTS_MAX)
        small = folder / "small.parquet"
        duckdb.sql(
            f"COPY (SELECT * FROM '{path}' USING SAMPLE {given}) TO '{small}' (FORMAT parquet)"
        )
        own = _timed(lambda: side.sparks_own(small))
        side.compare(path)
    finally:
        side.close()
    spark = own * events / given
    numbers = {
        "events": events,
        "tumbling": times["tumbling"],
        "sliding": times["sliding"],
        "sliding_to_tumbling": times["sliding"] / times["tumbling"],
        "sparks_own": spark,
        "sparks_own_events": given,
        "sparks_own_to_sliding": spark / times["sliding"],
    }
    scaled = f", {own:.1f} s for {given:,} events" if given < events else ""
    console.print(
        f"{events:,} events, {KEYS} keys, windows of {SIZE} s every {SLIDE} s; samples agree: "
        f"sliding {times['sliding']:.1f} s, tumbling {times['tumbling']:.1f} s "
        f"({numbers['sliding_to_tumbling']:.2f}x), Spark's own sliding {spark:.1f} s{scaled} "
        f"({numbers['sparks_own_to_sliding']:.0f}x)"
    )
    return numbers


def write_events(path: Path, events: int) -> None:
    """Events spread over an hour, in no order."""
    moment = f"make_timestamp({START_US} + (hash(i) % {SECONDS * 1_000_000})::BIGINT)"
    duckdb.sql(f"""
        COPY (SELECT '/page/' || (hash(i * 7) % {KEYS}) AS page, timezone('UTC', {moment}) AS ts,
                     (hash(i * 11) % 5000)::BIGINT AS ms
              FROM range({events}) t(i)) TO '{path}' (FORMAT parquet)
    """)


class _Headrace:
    """Both views in one store, built by one session of Spark."""

    def __init__(self, folder: Path, events: Path) -> None:
        from bench.sides import _session
        from headrace.compile.passes import compile_project
        from headrace.define.project import Project
        from headrace.define.settings import Settings
        from headrace.define.statements import read_statements
        from headrace.serving.read import Reader
        from headrace.serving.sqlite_store import SqliteStore
        from headrace.spark.analyse import SparkAnalyser

        self.spark = _session()
        project = Project(
            folder, Settings("bench"), tuple(read_statements(DEFINITIONS, "bench.sql"))
        )
        self.plan = compile_project(project, SparkAnalyser(self.spark))
        self.store = SqliteStore(folder / "serving.db")
        self.store.take_over()
        self.store.deploy(self.plan)
        self.reader = Reader(self.store.db, seconds_max=600)
        self.spark.read.parquet(str(events)).createOrReplaceTempView("clicks")

    def build(self, view: str) -> None:
        """Lift all events and promote the rows as a full generation."""
        from headrace.spark.relations import rows_of

        version = next(v for v in self.store.versions("clicks") if v.name == view)
        rows = rows_of(self.spark.sql(version.plan.partial_sql))
        staged = self.store.stage(version, True, rows, ())
        position = self.store.stream("clicks").position
        highs = [None] * len(position.offsets)
        self.store.promote("clicks", position, 0, [staged], [], highs)

    def sparks_own(self, events: Path) -> None:
        """Spark's sliding aggregation, each of its rows computed and thrown away."""
        self.spark.read.parquet(str(events)).createOrReplaceTempView("own")
        self.spark.sql(
            f"SELECT page, {_SLIDING} AS w, count(*), sum(ms), max(ms) FROM own "
            f"GROUP BY page, {_SLIDING}"
        ).write.format("noop").mode("overwrite").save()

    def compare(self, events: Path) -> None:
        rng = random.Random(1)
        for _ in range(SAMPLES):
            page, second = f"/page/{rng.randrange(KEYS)}", rng.randrange(1 - SIZE, SECONDS)
            start = START_US + second * 1_000_000
            ours = self.ours(page, start)
            theirs = duckdb.sql(f"""
                SELECT count(*), sum(ms)::BIGINT, max(ms) FROM '{events}' WHERE page = '{page}'
                AND epoch_us(ts) >= {start} AND epoch_us(ts) < {start + SIZE * 1_000_000}
            """).fetchall()
            if ours != [row for row in theirs if row[0]]:
                raise SystemExit(f"window {second} of {page} differs, so no time counts")

    def ours(self, page: str, start: int) -> Rows:
        from headrace.core.time import iso

        rows = self.reader.view(
            "sliding", {"page": page}, since=iso(start), until=iso(start + 1)
        ).rows
        return [(row["n"], row["ms"], row["slowest"]) for row in rows]

    def close(self) -> None:
        self.store.close()
        self.spark.stop()


def _timed(work: Callable[[], None]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


if __name__ == "__main__":
    import sys

    with tempfile.TemporaryDirectory() as name:
        measure(Path(name) / "sliding", int(sys.argv[1]), Console())
