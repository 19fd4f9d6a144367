"""The same tumbling-window view over the same events: Headrace until idle, hand-written PySpark,
DuckDB.

All answers must agree before a time counts. `work` leaves the start of Python and Spark out of
every side.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import duckdb
from rich.console import Console
from rich.table import Table

from bench.data import DEFINITIONS, lines_of, write_events
from bench.process import Child
from bench.until_idle import export, run_until_idle

FILES = 32


def measure(folder: Path, events: int, console: Console) -> dict[str, Any]:
    """Run all sides; a table and the numbers."""
    source = folder / "events"
    console.print(f"making {events:,} events …")
    write_events(source, events, FILES)
    size = sum(path.stat().st_size for path in lines_of(source))
    sides = {
        name: _side(name, folder, source) for name in ("duckdb", "spark-state", "spark-partials")
    }
    sides["headrace"] = _headrace(folder, source)
    _compare(folder, sides)
    best = min(sides["spark-state"]["work"], sides["spark-partials"]["work"])
    console.print(_table(sides, events, size, best))
    return {"events": events, "ratio": best / sides["headrace"]["work"], "sides": sides}


def _side(name: str, folder: Path, source: Path) -> dict[str, Any]:
    out = folder / f"{name}.parquet"
    command = [sys.executable, "-m", "bench.sides", name, str(source), str(out)]
    child = Child(command).run(Path.cwd(), folder / f"{name}.log")
    work = json.loads(child.lines[-1][1])["work"]
    return {"work": work, "whole": child.seconds, "memory_mb": child.memory_mb}


def _headrace(folder: Path, source: Path) -> dict[str, Any]:
    project = folder / "project"
    numbers = run_until_idle(project, DEFINITIONS, source)
    names = {"url": "url", "hour_start": "hour", "hits": "hits", "ms": "ms", "slowest": "slowest"}
    export(project, "pages", names, folder / "headrace.parquet")
    return numbers


def _compare(folder: Path, sides: dict[str, Any]) -> None:
    for name in sides:
        for one, other in ((name, "duckdb"), ("duckdb", name)):
            left = (
                duckdb.connect()
                .execute(f"""
                SELECT count(*) FROM (
                SELECT url, hour, hits, ms, slowest FROM '{folder}/{one}.parquet'
                EXCEPT SELECT url, hour, hits, ms, slowest FROM '{folder}/{other}.parquet')
            """)
                .fetchone()
            )
            if left is None or left[0]:
                raise SystemExit(f"{name} and duckdb disagree, so no time counts")


def _table(sides: dict[str, Any], events: int, size: int, best: float) -> Table:
    table = Table(title=f"{events:,} events, {size / 1e6:,.0f} MB of JSON; all answers agree")
    for column in (
        "side",
        "work s",
        "events/s",
        "to best PySpark",
        "whole process s",
        "peak memory MB",
    ):
        table.add_column(column, justify="left" if column == "side" else "right")
    for name, side in sides.items():
        table.add_row(
            name,
            f"{side['work']:.2f}",
            f"{events / side['work']:,.0f}",
            f"{best / side['work']:.2f}x",
            f"{side['whole']:.1f}",
            f"{side['memory_mb']:,.0f}",
        )
    sent = sides["headrace"]["send"]
    table.caption = f"sending to the log, with fsync: {sent:.1f} s, {events / sent:,.0f} events/s"
    return table
