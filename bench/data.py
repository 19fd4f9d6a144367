"""The events of the benchmark: the same lines for everyone, made by DuckDB in a few seconds."""

from __future__ import annotations

from pathlib import Path

import duckdb

USERS, ADS, CAMPAIGNS = 200_000, 1_000, 100
START_US, DAY_US = 1_767_225_600_000_000, 86_400_000_000
DISORDER_US = 600_000_000


def write_events(folder: Path, events: int, files: int) -> None:
    """A day of `events` clicks, JSON lines of about 100 bytes, up to ten minutes out of order; and
    beside them the ads, each of a campaign.
    """
    folder.mkdir(parents=True)
    for number in range(files):
        first, last = events * number // files, events * (number + 1) // files
        duckdb.sql(f"""
            COPY (
              SELECT 'user-' || (hash(i) % {USERS}) AS "user",
                     'ad-' || (hash(i * 7) % {ADS}) AS ad,
                     ['view', 'click', 'buy'][1 + (hash(i * 5) % 3)::INT] AS kind,
                     strftime(make_timestamp({START_US} + (i * {DAY_US} // {events})
                       - (hash(i * 3) % {DISORDER_US})::BIGINT), '%Y-%m-%dT%H:%M:%S.%gZ') AS ts,
                     (hash(i * 11) % 5000)::BIGINT AS ms
              FROM range({first}, {last}) t(i)
            ) TO '{folder}/{number:03d}.json' (FORMAT json)
        """)
    lines = [f"ad-{ad},campaign-{ad % CAMPAIGNS}" for ad in range(ADS)]
    ads_of(folder).write_text("\n".join(["ad,campaign", *lines, ""]))


def lines_of(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json"))


def ads_of(folder: Path) -> Path:
    return folder / "ads.csv"
