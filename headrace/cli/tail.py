"""`headrace tail`: a view's panes, a line each, as they are told.

With `--json` each event is one JSON line, as it came. It ends with the project, with Ctrl-C, or
after `--limit` panes. tests/cli/test_tail.py reads the lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from rich.text import Text

from headrace.cli.folder import connected, loaded
from headrace.cli.report import console, dim, print_json
from headrace.cli.words import cell
from headrace.serving.feed import FAILED, PANE, RELATION, Heard, Hearing

_STYLES = {"early": "cyan", "on_time": "green", "late": "yellow"}
_WAIT_S = 1.0


def tail(folder: Path, text: str, *, after: int | None, limit: int | None, json: bool) -> int:
    """Hear a running project."""
    screen, panes = console(), 0
    with connected(loaded(folder)) as service:
        hearing = service.subscribe(text, after)
        try:
            for heard in _all(hearing):
                if json:
                    print_json(heard)
                else:
                    for line in lines(heard):
                        screen.print(line, soft_wrap=True)
                panes += heard.event == PANE
                if heard.event == FAILED or (limit is not None and panes >= limit):
                    return int(heard.event == FAILED)
        finally:
            hearing.close()
    return 0


def _all(hearing: Hearing) -> Iterator[Heard]:
    while not hearing.ended:
        yield from hearing.take(_WAIT_S)


def lines(heard: Heard) -> list[Text]:
    """An event for a person."""
    data: dict[str, Any] = heard.data
    if heard.event == PANE:
        return [_pane(data)]
    if heard.event == RELATION:
        return [_row(row) for row in data["rows"]]
    return [dim(data.get("reason") or data.get("message") or msgspec.json.encode(data).decode())]


def _pane(pane: dict[str, Any]) -> Text:
    line = Text(f"{pane['timing']:<8}", style=_STYLES[pane["timing"]])
    line.append("- " if pane["op"] == "delete" else "+ ", style="default")
    line.append(_row(pane["row"]))
    return line.append("  last", style="dim") if pane["last"] else line


def _row(row: dict[str, Any]) -> Text:
    if set(row) == {"rows"}:
        return Text(" | ".join(_row(inner).plain for inner in row["rows"]) or "no rows")
    return Text("  ".join(f"{name}={cell(value, '')}" for name, value in row.items()))
