"""`headrace why` and `headrace replay`: the events of a row, and its history.

If a second engine does not compute the same row from the listed events, that is shown in red and
the exit code is 1, as for an audit. tests/cli/test_tracing.py reads both pages.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer
from rich.console import RenderableType
from rich.text import Text

from headrace.api.resources.rows import ReplayRequest, WhyRequest
from headrace.audit.trace import Replay, ReplayStep, SkippedRecords, TracedRecord, Why
from headrace.cli.folder import open_service
from headrace.cli.report import Report, bad, dim, good, spinner
from headrace.client.formats import cell, plural, timestamp
from headrace.client.table import table

_SEEN = ("partition", "offset", "event time", "arrived", "", "raw")
_STEP = ("step", "at", "position", "events", "late", "shed", "row after it")


def why(folder: Path, view: str, where: list[str], window: str | None, limit: int) -> Report:
    """The events of a row."""
    with open_service(folder) as service, spinner("searching the events"):
        found = service.ask(WhyRequest(view, _keys(where), window=window, limit=limit))
    parts: list[RenderableType] = [_head(found), Text(f"behind it: {_many(found)}")]
    parts += [_records(found.listed)] if found.listed else []
    for left in found.left_out:
        parts += ["", Text(f"left out: {_many(left)}, {left.reason}")]
        parts += [_records(left.listed)] if left.listed else []
    return _report(found, parts)


def replay(folder: Path, view: str, where: list[str], window: str | None, limit: int) -> Report:
    """The history of a row."""
    with open_service(folder) as service, spinner("recomputing the row, step by step"):
        found = service.ask(ReplayRequest(view, _keys(where), window=window, limit=limit))
    parts: list[RenderableType] = [_head(found)]
    parts += [dim(plural(found.earlier, "earlier step"))] if found.earlier else []
    rows = [_step(step, found.key) for step in found.steps]
    parts += [table(*_STEP, rows=rows, right=("events", "late", "shed"))] if rows else []
    return _report(found, parts)


def _keys(where: list[str]) -> dict[str, str]:
    keys: dict[str, str] = {}
    for text in where:
        name, sign, value = text.partition("=")
        if not sign or not name or name in keys:
            message = f"expected KEY=VALUE with each key once, got '{text}'"
            raise typer.BadParameter(message, param_hint="--where")
        keys[name] = value
    return keys


def _report(found: Why | Replay, parts: list[RenderableType]) -> Report:
    message = good(found.sentence) if found.agrees else bad(found.sentence)
    return Report(found, [*parts, "", message], 0 if found.agrees else 1)


def _head(found: Why | Replay) -> Text:
    return Text(f"{found.view}: ", style="bold").append(Text(_row(found.row), style="default"))


def _row(row: dict[str, Any] | None) -> str:
    return _pairs(row.items()) if row else "there is no such row"


def _pairs(items: Iterable[tuple[str, Any]]) -> str:
    return ", ".join(f"{name} {cell(value, '')}" for name, value in items)


def _many(found: Why | SkippedRecords) -> str:
    # If nothing is listed, nothing is missing.
    more = found.events - len(found.listed) if found.listed else 0
    return plural(found.events, "event") + (f" ({more:,} not listed)" if more else "")


def _records(seen: list[TracedRecord]) -> RenderableType:
    rows = [
        [
            str(record.partition),
            str(record.offset),
            timestamp(record.event_time) if record.event_time else "none",
            timestamp(record.arrived_at),
            record.reason or ("late" if record.late else ""),
            record.raw,
        ]
        for record in seen
    ]
    return table(*_SEEN, rows=rows, right=_SEEN[:2])


def _step(step: ReplayStep, key: dict[str, Any]) -> list[str]:
    # The keys are in the head and are the same in every step.
    values = [pair for pair in (step.row or {}).items() if pair[0] not in key]
    return [
        f"{step.what} {step.number}",
        timestamp(step.at),
        ",".join(map(str, step.position)),
        f"{step.events:,}",
        f"{step.late:,}",
        f"{step.shed:,}",
        _pairs(values) if step.row else "no such row yet",
    ]
