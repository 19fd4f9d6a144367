"""`headrace serve`: serves a domain until it is told to stop.

With `--json` each report is one JSON line {"kind": …}. The end of the server is no end of its jobs.
tests/server/test_story.py starts it.
"""

from __future__ import annotations

import signal
import threading
from pathlib import Path

from headrace.cli.report import console, dim, good, print_json


def serve(home: Path | None, port: int | None, *, json: bool) -> int:
    from headrace.server.home import found_home
    from headrace.server.serve import serve as run

    folder = found_home(home)

    def report(url: str) -> None:
        if json:
            print_json({"kind": "serving", "url": url, "home": str(folder)})
            return
        console().print(good(f"serving at {url}; stop with Ctrl-C, jobs go on"), soft_wrap=True)
        console().print(dim(f"  jobs are kept in {folder}"), soft_wrap=True)

    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    run(folder, port=port, wait=stop.wait, report=report)
    return 0
