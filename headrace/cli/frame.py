"""One frame of `headrace top`, ordered by importance for a person on call.

The state, then streams, views, rules and the most severe open alerts, and last the problems. A
narrow screen has the most important columns; a wide one has all. Yellow is a warning, red is an
error; green is only what is known to be well.
tests/cli/test_top.py reads whole frames at 80 and 160 columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from headrace.api.resources.status import ProjectStatus, StreamStatus, ViewStatus
from headrace.api.rule_service import RuleStatus
from headrace.cli.rates import Rates
from headrace.cli.report import bad, dim, good, problem_line
from headrace.client.formats import cell, plural, timestamp_to_second
from headrace.core.time import MILLISECOND, duration_text
from headrace.serving.alerts import Alert, Alerts

WIDE = 120
_CURVE = 20
_SEVERITIES = {"critical": "bold red", "high": "red", "medium": "yellow"}
# A stream is behind if its lag is larger than the events of this number of triggers.
_STALE_TRIGGERS = 10
Cell = str | Text
RUNNING, DEGRADED = "running", "degraded"


@dataclass(frozen=True, slots=True)
class FrameColumn:
    """A column: its head, whether it has numbers, and whether it is for wide screens only."""

    head: str
    number: bool = True
    wide: bool = False


_STREAMS = (
    FrameColumn("stream", number=False),
    FrameColumn("source", number=False, wide=True),
    FrameColumn("events/s"),
    FrameColumn("", number=False, wide=True),
    FrameColumn("lag"),
    FrameColumn("behind"),
    FrameColumn("epoch"),
    FrameColumn("trigger"),
    FrameColumn("age"),
    FrameColumn("accepted", wide=True),
    FrameColumn("late", wide=True),
    FrameColumn("dead letters", wide=True),
    FrameColumn("off"),
)
_VIEWS = (
    FrameColumn("view", number=False),
    FrameColumn("kind", number=False, wide=True),
    FrameColumn("state", number=False),
    FrameColumn("stream", number=False, wide=True),
    FrameColumn("rows"),
    FrameColumn("age"),
    FrameColumn("generation"),
    FrameColumn("differences"),
)
_RULES = (
    FrameColumn("rule", number=False),
    FrameColumn("state", number=False),
    FrameColumn("severity", number=False),
    FrameColumn("alerts"),
    FrameColumn("open"),
    FrameColumn("suppressed", wide=True),
    FrameColumn("missed", wide=True),
    FrameColumn("withdrawn", wide=True),
    FrameColumn("waiting"),
    FrameColumn("failed"),
)


def frame(found: ProjectStatus, alerts: Alerts, rates: Rates, width: int) -> RenderableType:
    """The whole screen."""
    streams = {stream.name: stream for stream in found.streams}
    views = [_view(view, streams.get(view.stream)) for view in found.views]
    parts: list[RenderableType] = [_head(found)]
    parts += _table(_STREAMS, [_stream(s, rates) for s in found.streams], width)
    parts += _table(_VIEWS, views, width)
    parts += _table(_RULES, [_rule(rule) for rule in found.rules], width)
    if shown := alerts.alerts:
        head = f"{len(shown)} of {plural(alerts.total, 'open alert')}, the most severe first"
        parts += ["", Text(head, style="bold"), *map(_alert, shown)]
    return Group(*parts, "", *_problems(found))


def _head(found: ProjectStatus) -> Text:
    line = Text(found.name, style="bold", no_wrap=True, overflow="ellipsis")
    style = "green" if found.state == "running" else "yellow"
    line.append(f"  {found.state}", style=style)
    line.append(f"  {found.url}" if found.url else "", style="not bold")
    since = f"  since {timestamp_to_second(found.started_at)} UTC" if found.started_at else ""
    return line.append(since, style="not bold dim")


def _table(
    columns: Sequence[FrameColumn], rows: Sequence[Sequence[Cell]], width: int
) -> list[Table | str]:
    if not rows:
        return []
    shown = [n for n, column in enumerate(columns) if width >= WIDE or not column.wide]
    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in (columns[n] for n in shown):
        # Names are truncated before numbers are: a truncated number is a wrong number.
        most = None if column.number else max(12, width // 4)
        side: JustifyMethod = "right" if column.number else "left"
        made.add_column(Text(column.head), justify=side, no_wrap=True, max_width=most)
    for row in rows:
        made.add_row(*(row[n] if isinstance(row[n], Text) else Text(str(row[n])) for n in shown))
    return ["", made]


def _stream(stream: StreamStatus, rates: Rates) -> list[Cell]:
    rate, trigger = rates.rate(stream.name), stream.trigger_ms
    slow = trigger is not None and (stream.last_epoch_ms or 0) > trigger
    return [
        stream.name,
        stream.source,
        dim("–") if rate is None else f"{rate:,.0f}",
        Text(rates.curve(stream.name, _CURVE), style="cyan"),
        _warned(f"{stream.lag_events:,}", _behind(stream, rate)),
        _length(stream.watermark_gap_ms),
        _warned(_length(stream.last_epoch_ms), slow),
        _length(trigger),
        _length(stream.age_ms),
        f"{stream.balance.accepted:,}",
        f"{stream.late:,}",
        f"{stream.balance.dead_letters:,}",
        bad(f"{stream.balance.off:,}") if stream.balance.off else good("0"),
    ]


def _behind(stream: StreamStatus, rate: float | None) -> bool:
    """Whether the lag is larger than the events of several triggers."""
    trigger_s = (stream.trigger_ms or 0) / 1000
    return stream.lag_events > (rate or 0.0) * trigger_s * _STALE_TRIGGERS + 1_000


def _view(view: ViewStatus, stream: StreamStatus | None) -> list[Cell]:
    state = _warned(view.state, view.state != "live")
    if view.kind == "read":
        # It has no stored rows, so there is nothing to count.
        return [view.name, view.kind, dim(view.state), view.stream, "", "", "", ""]
    differences = dim("none yet") if view.differences is None else good("0")
    return [
        view.name,
        view.kind,
        state,
        view.stream,
        f"{view.rows:,}",
        _length(stream.age_ms if stream else None),
        str(view.generation),
        bad(f"{view.differences:,}") if view.differences else differences,
    ]


def _rule(rule: RuleStatus) -> list[Cell]:
    n = rule.numbers
    numbers = (n.alerts, n.open, n.suppressed, n.missed, n.withdrawn, n.waiting)
    return [
        rule.name,
        _warned(rule.state, rule.state != "enabled"),
        Text(rule.severity, style=_SEVERITIES.get(rule.severity, "")),
        *(f"{number:,}" for number in numbers),
        bad(f"{n.failed:,}") if n.failed else "0",
    ]


def _alert(alert: Alert) -> Text:
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(f"{timestamp_to_second(alert.raised_at)}  ", style="dim")
    line.append(f"{alert.severity:<9}", style=_SEVERITIES.get(alert.severity, ""))
    line.append(f"{alert.rule}  ", style="bold")
    body = "  ".join(f"{name}={cell(value, '')}" for name, value in alert.body.items())
    return line.append(body)


def _problems(found: ProjectStatus) -> list[Text]:
    lines = [problem_line(one) for one in found.problems]
    lines += [
        Text(f"{s.name}: {plural(s.shed, 'event')} skipped by speed", style="yellow")
        for s in found.streams
        if s.shed
    ]
    explained = found.state == DEGRADED and found.problems
    if found.state != RUNNING and not explained:
        line = f"{found.state}: {found.reason}" if found.reason else found.state
        lines.insert(0, Text(line, style="yellow"))
    return lines or [good("no problems")]


def _length(ms: int | None) -> str:
    if ms is None:
        return "–"
    return f"{'-' if ms < 0 else ''}{duration_text(abs(ms) * MILLISECOND)}"


def _warned(text: str, warned: bool) -> Text:
    return Text(text, style="yellow" if warned else "")
