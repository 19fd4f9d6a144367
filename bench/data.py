"""The events of the benchmark: the same lines for everyone, made by DuckDB in a few seconds."""

from __future__ import annotations

from pathlib import Path

import duckdb

DEFINITIONS = """
CREATE STREAM clicks (
  user STRING NOT NULL, url STRING NOT NULL, ts TIMESTAMP NOT NULL, ms BIGINT,
  WATERMARK ts DELAY OF INTERVAL 10 MINUTES
) WITH (key = 'user');

CREATE VIEW pages AS
SELECT url, window(ts, '1 hour') AS hour, count(*) AS hits, sum(ms) AS ms, max(ms) AS slowest
FROM clicks GROUP BY url, window(ts, '1 hour');
"""
SCHEMA = "event_id STRING, user STRING, url STRING, ts TIMESTAMP, ms BIGINT"


def write_events(folder: Path, events: int, files: int) -> None:
    """`events` JSON lines of about 120 bytes in `files` files."""
    folder.mkdir(parents=True)
    share = events // files
    for number in range(files):
        first = number * share
        last = events if number == files - 1 else first + share
        duckdb.sql(f"""
            COPY (
              SELECT 'event-' || i AS event_id,
                     'user-' || (hash(i) % 20000) AS "user",
                     '/page/' || (hash(i * 7) % 500) AS url,
                     strftime(make_timestamp(1767225600000000 + (i * 86400000000 // {events})
                       - (hash(i * 3) % 600000000)::BIGINT), '%Y-%m-%dT%H:%M:%S.%fZ') AS ts,
                     (hash(i * 11) % 5000)::BIGINT AS ms
              FROM range({first}, {last}) t(i)
            ) TO '{folder}/{number:03d}.json' (FORMAT json)
        """)


def lines_of(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json"))
