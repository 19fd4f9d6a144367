"""`headrace late`: how many events of each window were late, by how much, and where they are.

Late events are in the answer at once, by speed; the last column is the first generation of batch
that includes them.
tests/cli/test_late.py reads a whole page.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from headrace.api.resources.rows import LateRequest
from headrace.cli.folder import open_service
from headrace.cli.report import Report, dim
from headrace.client.formats import cell, plural, timestamp
from headrace.client.render import freshness
from headrace.client.table import table
from headrace.core.errors import BadRequest
from headrace.core.time import MILLISECOND, duration_text
from headrace.serving.late import LateAnswer, LateWindow

_NUMBERS = ("on time", "late", "late by (max)", "late by (mean)")


def keys_of(conditions: Sequence[str]) -> dict[str, str]:
    """The conditions of `--where key=value`."""
    found = {}
    for text in conditions:
        key, sign, value = text.partition("=")
        if not sign or not key.strip():
            raise BadRequest(f"expected key=value, got '{text}'", hint="--where url=/home")
        found[key.strip()] = value
    return found


def late(
    folder: Path,
    view: str,
    keys: dict[str, str],
    since: str | None,
    until: str | None,
    limit: int | None,
) -> Report:
    """The lateness of a view's windows."""
    with open_service(folder) as service:
        answer = service.ask(LateRequest(view, keys, since=since, until=until, limit=limit))
    return Report(answer, render(answer))


def render(answer: LateAnswer) -> list[RenderableType]:
    lines = [dim(freshness(stream, as_of)) for stream, as_of in answer.as_of.items()]
    cut = [Text("there are more windows; give --since or --where", style="yellow")]
    return [_windows(answer), dim(_sum(answer)), *lines, *(cut if answer.truncated else [])]


def _windows(answer: LateAnswer) -> RenderableType:
    if not answer.windows:
        return Text("no windows")
    keys = list(answer.windows[0].key)
    rows = [_row(window) for window in answer.windows]
    return table(*keys, *_NUMBERS, "absorbed by", rows=rows, right=_NUMBERS)


def _row(window: LateWindow) -> list[str]:
    return [
        *(_key(value) for value in window.key.values()),
        f"{window.on_time:,}",
        f"{window.late:,}",
        _length(window.late_by_max_ms),
        _length(window.late_by_mean_ms),
        _absorbed(window),
    ]


def _key(value: object) -> str:
    text = cell(value, "STRING")
    return timestamp(text) if text.endswith("Z") and text[:4].isdecimal() else text


def _length(ms: float | None) -> str:
    return "" if ms is None else duration_text(round(ms * MILLISECOND))


def _absorbed(window: LateWindow) -> str:
    """Where the late events are: in a generation, in speed, or in both."""
    batch = f"generation {window.absorbed_by}" if window.absorbed else ""
    speed = f"{window.waiting:,} not yet (speed)" if window.waiting else ""
    return ", ".join(part for part in (batch, speed) if part)


def _sum(answer: LateAnswer) -> str:
    late = sum(window.late for window in answer.windows)
    events = late + sum(window.on_time for window in answer.windows)
    windows = plural(len(answer.windows), "window")
    # An event is in each of the windows that overlap there.
    return f"{windows}; summed over them, {late:,} of {plural(events, 'event')} late"
