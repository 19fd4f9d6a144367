"""`headrace tail`: a view's panes or a stream's rows, one per line, as they arrive.

With `--json` each event is one JSON line, as received. It ends with the project, with Ctrl-C, or
after `--limit` panes or rows (and those of the same event), and prints how to resume.
tests/cli/test_tail.py reads the lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from rich.text import Text

from headrace.cli.folder import open_service
from headrace.cli.report import console, dim, print_json
from headrace.client.formats import cell
from headrace.serving.stream_feed import POSITION, ROWS
from headrace.serving.subscriber import FAILED, OpenSubscription, SubscriptionEvent
from headrace.serving.view_feed import PANE, RELATION

_STYLES = {"early": "cyan", "on_time": "green", "late": "yellow"}
_WAIT_S = 1.0


def tail(folder: Path, text: str, *, after: str | None, limit: int | None, json: bool) -> int:
    """Subscribe to a running project."""
    printer = _Printer(after, limit)
    with open_service(folder) as service:
        hearing = service.subscribe(text, after)
        try:
            for heard in _all(hearing):
                printer.print(heard, json)
                if heard.event == FAILED or printer.enough:
                    return int(heard.event == FAILED)
        finally:
            hearing.close()
            if printer.after is not None and not json:
                console().print(dim(f"resume with --after {printer.after}"), soft_wrap=True)
    return 0


class _Printer:
    """Prints events, and has the position and the number of rows left."""

    def __init__(self, after: str | None, limit: int | None) -> None:
        self.after, self.left = after, limit

    @property
    def enough(self) -> bool:
        return self.left is not None and self.left <= 0

    def print(self, heard: SubscriptionEvent, json: bool) -> None:
        if heard.event == ROWS and self.left is not None and not json:
            heard = first_rows(heard, self.left)
        shown = event_lines(heard)
        if json:
            print_json(heard)
        else:
            for line in shown:
                console().print(line, soft_wrap=True)
        self.after = heard.id or self.after
        if heard.event in (PANE, ROWS) and self.left is not None:
            self.left -= len(shown)


def first_rows(heard: SubscriptionEvent, room: int) -> SubscriptionEvent:
    """The first rows of a message, with the position after them. All rows of an event are printed
    together, because there is no position between them.
    """
    rows, ends = heard.data["rows"], heard.data["ends"]
    while 0 < room < len(rows) and ends[room] == ends[room - 1]:
        room += 1
    if room >= len(rows):
        return heard
    return SubscriptionEvent(ROWS, {"rows": rows[:room], "ends": ends[:room]}, ends[room - 1])


def _all(hearing: OpenSubscription) -> Iterator[SubscriptionEvent]:
    while not hearing.ended:
        yield from hearing.poll(_WAIT_S)


def event_lines(heard: SubscriptionEvent) -> list[Text]:
    """An event for a person."""
    data: dict[str, Any] = heard.data
    if heard.event == PANE:
        return [_pane(data)]
    if heard.event in (RELATION, ROWS):
        return [_row(row) for row in data["rows"]]
    if heard.event == POSITION:
        return []
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
