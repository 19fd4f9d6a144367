"""`headrace serve`: serves a domain until it is stopped.

With `--json` each report is one JSON line {"kind": …}; that of an error has the kind "failed". Jobs
keep running when the server ends.
tests/server/test_story.py starts it.
"""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

from rich.text import Text

from headrace.cli.report import console, good
from headrace.cli.running import print_failed, print_json_line, report_line


def serve(home: Path | None, port: int | None, *, json: bool) -> int:
    from headrace.server.home import find_home
    from headrace.server.serve import serve as run

    folder = find_home(home)

    def report(kind: str, fields: dict[str, Any]) -> None:
        if json:
            print_json_line(kind, fields)
        else:
            console().print(_line(kind, fields), soft_wrap=True)

    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        run(folder, port=port, wait=stop.wait, report=report)
    except Exception as error:
        if not json:
            raise
        return print_failed(error)
    return 0


def _line(kind: str, fields: dict[str, Any]) -> Text:
    if kind != "serving":
        return report_line(kind, fields)
    line = good(f"serving at {fields['url']}; stop with Ctrl-C, jobs keep running")
    line.append(f"\n  login link, for one use: {fields['login']}", style="default")
    return line.append(f"\n  jobs are stored in {fields['home']}", style="dim")
