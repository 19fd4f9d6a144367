"""`make bench`: Headrace beside the alternatives, and each of its costs, in one run.

python -m bench --only throughput --events 1000000 --page docs/benchmarks.md
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from bench import (
    carried,
    intake,
    latency,
    live,
    patterns,
    reads,
    recovery,
    sliding,
    throughput,
    watches,
)
from bench.page import describe_machine, write_page

KILLS = 10
# Each part gets a folder of its own, the number of events, the seconds of a timed run, a console.
PARTS: dict[str, Callable[[Path, int, float, Console], Any]] = {
    "throughput": lambda folder, events, _, console: throughput.measure(folder, events, console),
    "sliding": lambda folder, events, _, console: sliding.measure(folder, events, console),
    "carried": lambda folder, events, _, console: carried.measure(folder, events, console),
    "patterns": lambda folder, events, _, console: patterns.measure(folder, events, console),
    "watches": lambda folder, _, __, console: watches.measure(folder, console),
    "intake": lambda folder, _, seconds, console: intake.measure(folder, seconds / 6, console),
    "latency": lambda folder, _, seconds, console: latency.measure(folder, seconds, console),
    "recovery": lambda folder, _, __, console: recovery.measure(folder, KILLS, console),
    "reads": lambda folder, _, seconds, console: reads.measure(folder, seconds, console),
    "live": lambda folder, _, seconds, console: live.measure(folder, seconds, console),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=4_000_000)
    parser.add_argument("--seconds", type=float, default=60.0, help="length of each timed run")
    parser.add_argument("--only", choices=PARTS, nargs="+", default=list(PARTS))
    parser.add_argument("--json", type=Path, help="write the numbers here")
    parser.add_argument("--page", type=Path, help="write a page with charts here")
    said = parser.parse_args()
    console, numbers = Console(), {"machine": describe_machine()}
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        for name in said.only:
            numbers[name] = PARTS[name](Path(folder) / name, said.events, said.seconds, console)
    numbers["machine"]["load_after"] = os.getloadavg()[0]
    if said.json:
        said.json.write_text(json.dumps(numbers, indent=2))
    if said.page:
        write_page(numbers, said.page)


if __name__ == "__main__":
    main()
