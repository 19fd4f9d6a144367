"""Views over the same events: Headrace until idle, hand-written PySpark, Flink SQL and DuckDB.

Each side of each workload is a process of its own, and all answers must equal DuckDB's, estimates
within their error, before a time counts. `work` leaves the start of Python and Spark out on every
side. The ratio is to the best program of PySpark that keeps the events too, as Headrace does.

    python -m bench.throughput 4000000
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import duckdb
from rich.console import Console

from bench.data import ads_of, lines_of, write_events
from bench.flink_sides import run_flink
from bench.process import Child
from bench.until_idle import export, run_until_idle
from bench.workloads import WORKLOADS, View, definitions, ten_views

FILES = 32
KEEP_BOTH = ("spark-batch", "spark-state", "spark-partials")
OTHERS = ("duckdb", "spark-view")
SIDES_SHOWN = (*OTHERS, *KEEP_BOTH, "flink", "headrace")
# Spark's own state has no distinct counts.
REFUSED = {("spark-state", "W2 distinct, exact")}
ESTIMATE_ERROR_MAX = 0.3  # six standard errors of Spark's approx_count_distinct
Views = tuple[View, ...]


def measure(folder: Path, events: int, console: Console) -> dict[str, Any]:
    """Run all sides, and print what they come to."""
    source = folder / "events"
    console.print(f"making {events:,} events …")
    write_events(source, events, FILES)
    size = sum(path.stat().st_size for path in lines_of(source))
    numbers: dict[str, Any] = {"events": events, "bytes": size, "workloads": {}}
    for number, (name, views) in enumerate(WORKLOADS.items()):
        numbers["workloads"][name] = _workload(folder / str(number), name, views, source, events)
        console.print(f"{name}: {_sentence(numbers['workloads'][name])}")
    numbers["ten_views"] = _ten_views(folder / "ten", source)
    numbers["noise"] = _noise(folder / "noise", source, numbers)
    console.print(
        f"ten views cost {numbers['ten_views']['ratio']:.2f} times as much as one of them"
    )
    return numbers


def _workload(folder: Path, name: str, views: Views, source: Path, events: int) -> dict[str, Any]:
    sides: dict[str, Any] = {}
    for side in (*OTHERS, *KEEP_BOTH):
        if (side, name) not in REFUSED:
            sides[side] = _side(side, name, source, folder / side)
    if flink := run_flink(views, source, folder / "flink"):
        sides["flink"] = flink
    sides["headrace"] = _headrace(folder / "headrace", views, source)
    for side in sides:
        _compare(views, source, side, folder / side)
    shutil.rmtree(folder)
    best = min(sides[side]["work"] for side in KEEP_BOTH if side in sides)
    whole = sides["headrace"]["work"] + sides["headrace"]["import"]
    return {
        "sides": sides,
        "events_per_second": {side: events / said["work"] for side, said in sides.items()},
        "ratio": best / sides["headrace"]["work"],
        "ratio_from_files": best / whole,
    }


def _side(side: str, workload: str, source: Path, out: Path) -> dict[str, Any]:
    out.mkdir(parents=True)
    command = [sys.executable, "-m", "bench.sides", side, workload, str(source), str(out)]
    child = Child(command).run(Path.cwd(), out / "log")
    work = json.loads(child.lines[-1][1])["work"]
    return {"work": work, "whole": child.seconds, "memory_mb": child.memory_mb}


def _headrace(folder: Path, views: Views, source: Path) -> dict[str, Any]:
    project = folder / "project"
    numbers = run_until_idle(project, definitions(views), source, tables=(ads_of(source),))
    for view in views:
        columns = {"w_start" if name == "w" else name: name for name in view.columns}
        export(project, view.name, columns, folder / view.name)
    return numbers


def _ten_views(folder: Path, source: Path) -> dict[str, float]:
    """What ten views cost beside one of them."""
    seconds = {}
    for count in (1, 10):
        project = folder / str(count)
        tables = (ads_of(source),)
        seconds[count] = run_until_idle(project, ten_views(count), source, tables=tables)["work"]
        shutil.rmtree(project)
    return {"one": seconds[1], "ten": seconds[10], "ratio": seconds[10] / seconds[1]}


def _noise(folder: Path, source: Path, numbers: dict[str, Any]) -> float:
    """How long DuckDB takes now, to its time at the beginning."""
    name = next(iter(WORKLOADS))
    return _side("duckdb", name, source, folder)["work"] / _work(numbers, name, "duckdb")


def _work(numbers: dict[str, Any], workload: str, side: str) -> float:
    return float(numbers["workloads"][workload]["sides"][side]["work"])


def _compare(views: Views, source: Path, side: str, out: Path) -> None:
    """Stop unless the answers are those of DuckDB."""
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE ads AS FROM read_csv('{ads_of(source)}')")
    connection.execute(f"CREATE VIEW clicks AS FROM read_json('{source}/*.json')")
    for view in views:
        columns = ", ".join(name for name in view.columns if not _estimated(view, name))
        files = out / view.name
        path = f"{files}/*.parquet" if files.is_dir() else files
        connection.execute(f"CREATE OR REPLACE TABLE theirs AS FROM read_parquet('{path}')")
        connection.execute(f"CREATE OR REPLACE TABLE ours AS {view.exact}")
        pairs = (("ours", "theirs"), ("theirs", "ours"))
        queries = [
            f"SELECT {columns} FROM {a} EXCEPT ALL SELECT {columns} FROM {b}" for a, b in pairs
        ]
        if view.estimated:
            queries.append(_wrong_estimates(columns))
        for query in queries:
            if wrong := connection.execute(f"{query} LIMIT 1").fetchall():
                raise SystemExit(f"{side} and duckdb disagree on {view.name}: {wrong}")


def _estimated(view: View, column: str) -> bool:
    return view.estimated and column == "users"


def _wrong_estimates(columns: str) -> str:
    return f"""SELECT {columns}, a.users, b.users FROM ours a JOIN theirs b USING ({columns})
        WHERE abs(a.users - b.users) > greatest(2, {ESTIMATE_ERROR_MAX} * a.users)"""


def _sentence(said: dict[str, Any]) -> str:
    rates = said["events_per_second"]
    sides = ", ".join(f"{side} {rate:,.0f}" for side, rate in rates.items())
    ratios = f"{said['ratio']:.2f}x the best PySpark that keeps both"
    return f"{ratios}, {said['ratio_from_files']:.2f}x with the import ({sides} events/s)"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as name:
        found = measure(Path(name) / "throughput", int(sys.argv[1]), Console())
        print(json.dumps(found))
