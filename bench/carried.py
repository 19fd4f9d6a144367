"""Carried views with 100,000 keys: an exponential average, and windows of ten events.

The events go through speed in epochs of the default size, each folded onto the states of its keys
and committed with them, and then through batch as one build. Both answers must be equal to DuckDB's
before a time counts.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
from rich.console import Console

KEYS, EPOCH_EVENTS, ALPHA, WINDOW = 100_000, 1_000_000, 0.2, 10
START_US = 1_767_225_600_000_000
DEFINITIONS = {
    "ewma": f"""
CREATE STREAM clicks (user STRING, ts TIMESTAMP, ms BIGINT, WATERMARK ts DELAY OF INTERVAL 1 HOUR)
  WITH (partitions = 1);
CREATE STREAM smooth AS
SELECT user, ts, ewma(ms, {ALPHA}) OVER (PARTITION BY user ORDER BY ts) AS soft FROM clicks;
CREATE VIEW v AS SELECT user, max_by(soft, ts) AS soft FROM smooth GROUP BY user;
""",
    "count windows": f"""
CREATE STREAM clicks (user STRING, ts TIMESTAMP, ms BIGINT, WATERMARK ts DELAY OF INTERVAL 1 HOUR)
  WITH (partitions = 1);
CREATE VIEW v AS SELECT user, count_window({WINDOW}) AS w, count(*) AS n, sum(ms) AS ms
FROM clicks GROUP BY user, count_window({WINDOW});
""",
}
ORACLES = {
    "ewma": f"""
SELECT user, list_reduce(list(ms::DOUBLE ORDER BY ts),
                         lambda a, x: {1 - ALPHA} * a + {ALPHA} * x) FROM '{{}}' GROUP BY user
""",
    "count windows": f"""
SELECT user, n - n % {WINDOW} AS w, count(*), sum(ms)::BIGINT FROM (
  SELECT *, row_number() OVER (PARTITION BY user ORDER BY ts) - 1 AS n FROM '{{}}') GROUP BY ALL
""",
}


def measure(folder: Path, events: int, console: Console) -> dict[str, Any]:
    """Events a second of each view in speed and in batch."""
    folder.mkdir(parents=True)
    path = folder / "events.parquet"
    write_events(path, events)
    numbers: dict[str, Any] = {"events": events, "keys": KEYS}
    for name, definitions in DEFINITIONS.items():
        side = _Headrace(folder / name.replace(" ", "_"), definitions, path)
        try:
            side.epoch(0)  # the first job of a session compiles its code
            rest = range(1, -(-events // EPOCH_EVENTS))
            seconds = sum(_timed(side.epoch, number) for number in rest)
            side.compare(ORACLES[name].format(path))
            speed = (events - EPOCH_EVENTS) / seconds
            batch = events / _timed(side.fold_all)
        finally:
            side.close()
        numbers[name] = {"speed": speed, "batch": batch}
        console.print(
            f"{name}, {events:,} events, {KEYS:,} keys, answers agree: "
            f"speed {speed:,.0f} events/s in epochs of {EPOCH_EVENTS:,}, "
            f"batch {batch:,.0f} events/s"
        )
    return numbers


def write_events(path: Path, events: int) -> None:
    """Events in the order of their time, as the log's reader gives them."""
    moment = f"timezone('UTC', make_timestamp({START_US} + i * 1000))"
    duckdb.sql(f"""
        COPY (SELECT 'user-' || (hash(i) % {KEYS}) AS user, {moment} AS ts,
                     (hash(i * 11) % 5000)::BIGINT AS ms, 0::INTEGER AS _partition,
                     i::BIGINT AS _offset, {moment} AS _arrived_at, false AS _late,
                     0::BIGINT AS _lateness, 0::TINYINT AS _status
              FROM range({events}) t(i)) TO '{path}' (FORMAT parquet)
    """)


class _Headrace:
    """One carried view in a store, with an empty generation."""

    def __init__(self, folder: Path, definitions: str, events: Path) -> None:
        from bench.sides import _session
        from headrace.compile.flow import flows_of
        from headrace.compile.passes import compile_project
        from headrace.define.project import Project
        from headrace.define.settings import Settings
        from headrace.define.statements import read_statements
        from headrace.serving.sqlite_store import SqliteStore
        from headrace.spark.analyse import SparkAnalyser

        self.spark = _session()
        parsed = tuple(read_statements(definitions, "bench.sql"))
        plan = compile_project(
            Project(folder, Settings("bench"), parsed), SparkAnalyser(self.spark)
        )
        self.flow = flows_of(plan)[0]
        self.events = self.spark.read.parquet(str(events))
        self.store = SqliteStore(folder / "serving.db")
        self.store.take_over()
        self.store.deploy(plan)
        start = self.store.stream("clicks").position
        staged = [self.store.stage(v, True, (), ()) for v in self.store.versions("clicks")]
        self.store.promote("clicks", start, 0, staged, [], [None])

    def epoch(self, number: int) -> None:
        """Compute and commit one epoch, as the speed layer does."""
        from headrace.core.position import Position, PositionRange
        from headrace.speed.carry import Behind
        from headrace.speed.epoch import compute_epoch

        lower, upper = number * EPOCH_EVENTS, (number + 1) * EPOCH_EVENTS
        frame = self.events.where(f"_offset >= {lower} AND _offset < {upper}")
        state = self.store.stream("clicks")
        behind = Behind(self.store, state, lambda *_: self.events, 0, {})
        made = compute_epoch(
            frame,
            self.flow,
            self.store.versions("clicks"),
            PositionRange(state.position, Position((upper,))),
            behind,
            START_US,
        )
        self.store.commit_epoch(made)

    def fold_all(self) -> None:
        """Fold and stage all events at once, as a full build does."""
        from headrace.spark.carry import Carrying
        from headrace.spark.relations import rows_of

        self.events.createOrReplaceTempView("clicks")
        version = self.store.versions("clicks")[0]
        folded = Carrying(self.spark, version.plan.carry, {}).fold([])
        rows = [row[1:] for row in rows_of(self.spark.sql(version.plan.partial_sql))]
        self.store.stage(version, True, rows, (), folded.states)

    def compare(self, oracle: str) -> None:
        ours = {row[:-1]: row[-1] for row in self._rows()}
        theirs = {row[:-1]: row[-1] for row in duckdb.sql(oracle).fetchall()}
        near = all(
            abs(value - theirs.get(key, -1e9)) <= 1e-9 * max(1.0, abs(value))
            for key, value in ours.items()
        )
        if len(ours) != len(theirs) or not near:
            raise SystemExit("the answers differ, so no time counts")

    def _rows(self) -> list[tuple[Any, ...]]:
        with self.store.db.read() as db:
            return [tuple(row) for row in db.execute("SELECT * FROM v")]

    def close(self) -> None:
        self.store.close()
        self.spark.stop()


def _timed(work: Any, *given: Any) -> float:
    began = time.monotonic()
    work(*given)
    return time.monotonic() - began


if __name__ == "__main__":
    import sys

    with tempfile.TemporaryDirectory() as name:
        measure(Path(name) / "carried", int(sys.argv[1]), Console())
