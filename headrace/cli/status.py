"""`headrace status`: the state, the streams with their balance, views, sinks, rules and watches.

The balance is shown as an equation, so that anyone can check it. A balance that is off is red.
tests/cli/test_status.py reads a whole page.
"""

from __future__ import annotations

from pathlib import Path

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from headrace.api.resources.balance import Balance
from headrace.api.resources.status import (
    ProjectStatus,
    SinkStatus,
    StatusRequest,
    StreamStatus,
    ViewStatus,
)
from headrace.cli.folder import open_service
from headrace.cli.report import Report, bad, dim, good, problem_line
from headrace.cli.rules import rule_table
from headrace.client.formats import balance_equation, timestamp_to_second
from headrace.client.table import table
from headrace.core.time import MILLISECOND, duration_text
from headrace.serving.watches import WatchCounts

_STREAM = ("stream", "source", "log end", "lag", "watermark", "generation", "late")
_SINK = ("sink", "view", "into", "guarantee", "delivered", "waiting", "dropped")
_VIEW = ("view", "kind", "state", "stream", "rows", "generation", "last audit")
_WATCHES = ("", "live", "ended", "matches", "waiting", "failed")
_TABLE = ("table", "version", "loaded at")


def status(folder: Path) -> Report:
    """The status of the project."""
    with open_service(folder) as service:
        found = service.ask(StatusRequest())
    return Report(found, render(found))


def render(found: ProjectStatus) -> list[RenderableType]:
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
        Text(f"{s.name}: speed has skipped {s.shed:,} events", style="yellow")
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
        tables = [[t.name, t.version, timestamp_to_second(t.loaded_at)] for t in found.tables]
        parts += ["", table(*_TABLE, rows=tables)]
    return [*parts, *map(problem_line, found.problems)]


def balance_line(stream: str, balance: Balance) -> Text:
    """One stream's balance; red if something is missing."""
    line = f"{stream}: {balance_equation(balance)}"
    return bad(line) if balance.off else dim(line)


def _state(found: ProjectStatus) -> Text:
    line = Text(f"{found.name}: ", style="bold")
    line.append(
        good(found.state) if found.state == "running" else Text(found.state, style="yellow")
    )
    line.append(f" at {found.url}" if found.url else "", style="default")
    line.append(
        f" since {timestamp_to_second(found.started_at)} UTC" if found.started_at else "",
        style="dim",
    )
    why = "" if found.problems and found.state == "degraded" else found.reason
    return line.append(f" ({why})" if why else "", style="yellow")


def _stream(stream: StreamStatus) -> list[str]:
    return [
        stream.name,
        stream.source,
        ",".join(map(str, stream.end)),
        f"{stream.lag_events:,}",
        timestamp_to_second(stream.watermark) if stream.watermark else "none",
        str(stream.generation),
        f"{stream.late:,}",
    ]


def _event_time(stream: StreamStatus) -> list[str]:
    """How far the watermark is behind the clock, and which partitions hold it back."""
    if stream.watermark is None or stream.watermark_gap_ms is None:
        return []
    gap = duration_text(abs(stream.watermark_gap_ms) * MILLISECOND)
    side = "behind" if stream.watermark_gap_ms >= 0 else "ahead of"
    held = stream.watermark_held_by
    by = f", held back by partition {held}" if held is not None and len(stream.end) > 1 else ""
    idle = ", ".join(
        f"{part.partition} since {timestamp_to_second(part.since)} UTC" for part in stream.idle
    )
    line = f"{stream.name}: watermark {gap} {side} the clock{by}"
    return [f"{line}; idle: partition {idle}" if idle else line]


def _view(view: ViewStatus) -> list[str | Text]:
    named = [view.name, view.kind, view.state, view.stream]
    if view.kind == "read":
        return [*named, "", "", ""]  # it has no stored rows, so there is nothing to count
    return [*named, f"{view.rows:,}", str(view.generation), _audit(view.differences)]


def _sink(sink: SinkStatus) -> list[str]:
    numbers = (sink.delivered, sink.waiting, sink.dropped)
    return [sink.name, sink.view, sink.into, sink.guarantee, *(f"{n:,}" for n in numbers)]


def _watches(found: WatchCounts) -> Table:
    numbers = (found.live, found.ended, found.matches, found.waiting, found.failed)
    return table(*_WATCHES, rows=[["watches", *(f"{n:,}" for n in numbers)]], right=_WATCHES[1:])


def _audit(differences: int | None) -> Text:
    if differences is None:
        return dim("none yet")
    return bad(f"{differences:,} differences") if differences else good("no difference")
