"""Carried views with 100,000 keys: an exponential average, and windows of ten events.

The events go through speed in epochs of the default size, each folded onto the states of its keys
and committed with them, and then through batch as one build. Both answers must be equal to DuckDB's
before a time counts.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import duckdb
from rich.console import Console

from bench.epochs import HIDDEN, START_US, Epochs, write_typed

KEYS, EPOCH_EVENTS, ALPHA, WINDOW = 100_000, 1_000_000, 0.2, 10
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
    path = folder / "events"
    write_events(path, events)
    numbers: dict[str, Any] = {"events": events, "keys": KEYS}
    for name, definitions in DEFINITIONS.items():
        side = Epochs(folder / name.replace(" ", "_"), definitions, path, EPOCH_EVENTS)
        try:
            side.epoch(0)  # the first job of a session compiles its code
            seconds = sum(side.epoch(number) for number in range(1, -(-events // EPOCH_EVENTS)))
            compare(side.rows(), ORACLES[name].format(f"{path}/*/*"))
            speed = (events - EPOCH_EVENTS) / seconds
            batch = events / side.fold_all()
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
    rows = f"""
        SELECT 'user-' || (hash(i) % {KEYS}) AS user, {moment} AS ts,
               (hash(i * 11) % 5000)::BIGINT AS ms, {HIDDEN.format(moment=moment)}
        FROM range({events}) t(i)
    """
    write_typed(path, rows, EPOCH_EVENTS)


def compare(ours: list[tuple[Any, ...]], oracle: str) -> None:
    """Stop unless both have the same keys and, in the last column, the same values."""
    mine = {row[:-1]: row[-1] for row in ours}
    theirs = {row[:-1]: row[-1] for row in duckdb.sql(oracle).fetchall()}
    near = all(
        abs(value - theirs.get(key, -1e9)) <= 1e-9 * max(1.0, abs(value))
        for key, value in mine.items()
    )
    if len(mine) != len(theirs) or not near:
        raise SystemExit("the answers differ, so no time counts")


if __name__ == "__main__":
    import sys

    with tempfile.TemporaryDirectory() as name:
        measure(Path(name) / "carried", int(sys.argv[1]), Console())
