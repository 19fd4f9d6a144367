"""`headrace status`: the state, the streams with their balance, views, sinks, rules and watches.

The balance is written out as an equation, because a sum that anyone can check is worth more than a
green light. What is off is red.
tests/cli/test_status.py reads a whole page.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from headrace.api.service import Balance, SinkStatus, Status, StreamStatus, ViewStatus
from headrace.cli.folder import asked
from headrace.cli.report import Report, bad, dim, good, problem_line
from headrace.cli.rules import rule_table
from headrace.client.table import table
from headrace.client.words import equation, second
from headrace.core.time import MILLISECOND, duration_text
from headrace.serving.watches import WatchNumbers

_STREAM = ("stream", "source", "log end", "lag", "watermark", "generation", "late")
_SINK = ("sink", "view", "into", "guarantee", "delivered", "waiting", "dropped")
_VIEW = ("view", "kind", "state", "stream", "rows", "generation", "last audit")
_WATCHES = ("", "live", "ended", "matches", "waiting", "failed")
_TABLE = ("table", "version", "loaded at")


def status(folder: Path) -> Report:
    """How the project is doing."""
    with asked(folder) as service:
        found = service.status()
    return Report(document(found), shown(found))


def document(found: Status) -> dict[str, Any]:
    """The status as JSON, with what each balance is off by."""
    said: dict[str, Any] = msgspec.to_builtins(found)
    for stream, fields in zip(found.streams, said["streams"], strict=True):
        fields["balance"] = balance_document(stream.balance)
    return said


def balance_document(balance: Balance) -> dict[str, int]:
    said: dict[str, int] = msgspec.to_builtins(balance)
    return said | {"off": balance.off}


def shown(found: Status) -> list[RenderableType]:
    parts: list[RenderableType] = [_state(found)]
    if found.streams:
        rows = [_stream(stream) for stream in found.streams]
        parts += ["", table(*_STREAM, rows=rows, right=("log end", "lag", "generation", "late"))]
        parts += ["", *(dim(line) for s in found.streams for line in _event_time(s))]
        parts += [balance_line(s.name, s.balance) for s in found.streams]
    if found.views:
        views = [_view(view) for view in found.views]
        parts += ["", table(*_VIEW, rows=views, right=("rows", "generation"))]
    parts += [
        Text(f"{s.name}: speed has passed over {s.shed:,} events", style="yellow")
        for s in found.streams
        if s.shed
    ]
    if found.sinks:
        sinks = [_sink(sink) for sink in found.sinks]
        parts += ["", table(*_SINK, rows=sinks, right=("delivered", "waiting", "dropped"))]
    if found.rules:
        parts += ["", rule_table(found.rules)]
    if found.watches:
        parts += ["", _watches(found.watches)]
        parts += [bad(problem) for problem in found.watches.problems]
    if found.tables:
        tables = [[t.name, t.version, second(t.loaded_at)] for t in found.tables]
        parts += ["", table(*_TABLE, rows=tables)]
    return [*parts, *map(problem_line, found.problems)]


def balance_line(stream: str, balance: Balance) -> Text:
    """One stream's balance; red if something is missing."""
    line = f"{stream}: {equation(balance)}"
    return bad(line) if balance.off else dim(line)


def _state(found: Status) -> Text:
    line = Text(f"{found.name}: ", style="bold")
    line.append(
        good(found.state) if found.state == "running" else Text(found.state, style="yellow")
    )
    line.append(f" at {found.url}" if found.url else "", style="default")
    line.append(f" since {second(found.started_at)} UTC" if found.started_at else "", style="dim")
    why = "" if found.problems and found.state == "degraded" else found.reason
    return line.append(f" ({why})" if why else "", style="yellow")


def _stream(stream: StreamStatus) -> list[str]:
    return [
        stream.name,
        stream.source,
        ",".join(map(str, stream.end)),
        f"{stream.lag_events:,}",
        second(stream.watermark) if stream.watermark else "none",
        str(stream.generation),
        f"{stream.late:,}",
    ]


def _event_time(stream: StreamStatus) -> list[str]:
    """How far event time is behind the clock, and which partitions decide on it."""
    if stream.watermark is None or stream.watermark_gap_ms is None:
        return []
    gap = duration_text(abs(stream.watermark_gap_ms) * MILLISECOND)
    side = "behind" if stream.watermark_gap_ms >= 0 else "ahead of"
    held = stream.watermark_held_by
    by = f", held back by partition {held}" if held is not None and len(stream.end) > 1 else ""
    idle = ", ".join(f"{part.partition} since {second(part.since)} UTC" for part in stream.idle)
    line = f"{stream.name}: watermark {gap} {side} the clock{by}"
    return [f"{line}; idle: partition {idle}" if idle else line]


def _view(view: ViewStatus) -> list[str | Text]:
    named = [view.name, view.kind, view.state, view.stream]
    if view.kind == "read":
        return [*named, "", "", ""]  # nothing is kept for it, so there is nothing to count
    return [*named, f"{view.rows:,}", str(view.generation), _audit(view.differences)]


def _sink(sink: SinkStatus) -> list[str]:
    numbers = (sink.delivered, sink.waiting, sink.dropped)
    return [sink.name, sink.view, sink.into, sink.guarantee, *(f"{n:,}" for n in numbers)]


def _watches(found: WatchNumbers) -> Table:
    numbers = (found.live, found.ended, found.matches, found.waiting, found.failed)
    return table(*_WATCHES, rows=[["watches", *(f"{n:,}" for n in numbers)]], right=_WATCHES[1:])


def _audit(differences: int | None) -> Text:
    if differences is None:
        return dim("none yet")
    return bad(f"{differences:,} differences") if differences else good("no difference")
