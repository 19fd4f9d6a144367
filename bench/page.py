"""docs/benchmarks.md and its charts, written from the numbers of one run.

python -m bench --json numbers.json --page docs/benchmarks.md
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.svg import bar_chart
from bench.throughput import SIDES_SHOWN

OURS = "headrace"
_BEGINNING = """# Benchmarks

Written by `make bench` from one run, in which all sides had the same events and the same machine.
The answers of all sides were compared cell by cell before a time counted. `spark-batch`,
`spark-state` and `spark-partials` are programs of PySpark written by hand
([bench/sides.py](../bench/sides.py)) that keep the events and the views, as Headrace does;
`spark-view`, `flink` and `duckdb` keep the views only. A time leaves out the start of Python and of
Spark, on every side. Numbers of two machines cannot be compared; ratios of one run can.
"""
_MACHINE = """| | |
|---|---|
| run | {at} |
| machine | {cores} cores, {memory_gb:.0f} GB, {system} |
| load of the machine | {load_before:.1f} before the run, {load_after:.1f} after it |
"""
_THROUGHPUT = """## Throughput

{events:,} events of {size:.0f} bytes as lines of JSON; events a second. The first ratio is to the
best program of PySpark that keeps both; the second also counts the time in which Headrace takes the
files into its log. At the end DuckDB took {noise:.2f} times as long as at the beginning, which is
the noise of the machine. Ten views cost {ten:.2f} times as much as one of them.
"""


def write_page(numbers: dict[str, Any], page: Path) -> None:
    """Write the page, and beside it a folder of charts with its name."""
    charts = page.with_suffix("")
    charts.mkdir(exist_ok=True)
    parts = [_BEGINNING, _MACHINE.format(**numbers["machine"])]
    if "throughput" in numbers:
        parts += _throughput(numbers["throughput"], charts)
    page.write_text("\n".join(parts) + "\n")


def _throughput(found: dict[str, Any], charts: Path) -> Iterator[str]:
    size, ten = found["bytes"] / found["events"], found["ten_views"]["ratio"]
    yield _THROUGHPUT.format(events=found["events"], size=size, noise=found["noise"], ten=ten)
    yield f"| | {' | '.join(SIDES_SHOWN)} | ratio | from files |"
    yield "|---" + "|---:" * (len(SIDES_SHOWN) + 2) + "|"
    for name, said in found["workloads"].items():
        rates = said["events_per_second"]
        cells = [f"{rates[side]:,.0f}" if side in rates else "" for side in SIDES_SHOWN]
        ratios = f"**{said['ratio']:.2f}** | {said['ratio_from_files']:.2f}"
        yield f"| {name} | {' | '.join(cells)} | {ratios} |"
    yield ""
    for number, (name, said) in enumerate(found["workloads"].items(), start=1):
        chart = charts / f"throughput-{number}.svg"
        chart.write_text(bar_chart(f"{name}: events a second", said["events_per_second"], OURS))
        yield f"![{name}]({charts.name}/{chart.name})"


def describe_machine() -> dict[str, Any]:
    """What the page says of the machine, before a run."""
    return {
        "at": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cores": os.cpu_count(),
        "memory_gb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30,
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "load_before": os.getloadavg()[0],
    }
