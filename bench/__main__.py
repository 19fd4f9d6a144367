"""`make bench`: throughput, windows, carried views, patterns, watches, latency and live readers, in
turn.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from rich.console import Console

from bench import carried, latency, live, patterns, sliding, throughput, watches


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=4_000_000)
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="length of the latency and live runs"
    )
    parser.add_argument("--json", type=Path, help="write the numbers here")
    arguments = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        numbers = {
            "throughput": throughput.measure(
                Path(folder) / "throughput", arguments.events, console
            ),
            "sliding": sliding.measure(Path(folder) / "sliding", arguments.events, console),
            "carried": carried.measure(Path(folder) / "carried", arguments.events, console),
            "patterns": patterns.measure(Path(folder) / "patterns", arguments.events, console),
            "watches": watches.measure(Path(folder) / "watches", console),
            "latency": latency.measure(Path(folder), arguments.seconds, console),
            "live": live.measure(Path(folder), arguments.seconds, console),
        }
    if arguments.json:
        arguments.json.write_text(json.dumps(numbers, indent=2))


if __name__ == "__main__":
    main()
