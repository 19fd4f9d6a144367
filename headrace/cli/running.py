"""`headrace run`: runs the project and prints its progress until it stops.

At a terminal the progress is one line that is overwritten; in a pipe it is a line every ten
seconds. With `--json` each report is one JSON line {"kind": …, …}, the last of kind "summary", or
"failed" with the five fields of an error. The exit code is 1 if the audit found a difference, a
balance is off, or a run that was not interrupted left accepted events unprocessed.
tests/cli/test_running.py reads the lines.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import typer
from rich.console import Console
from rich.status import Status
from rich.text import Text

from headrace.cli.failure import failure_of
from headrace.cli.folder import load
from headrace.cli.report import bad, console, dim, good, print_json, show
from headrace.cli.status import balance_line
from headrace.client.formats import plural
from headrace.core.rule import audit_command
from headrace.core.time import SECOND, duration_us

_EVERY = 10  # progress reports, of which a pipe gets one


def seconds_of(text: str) -> float:
    """The time of `--for`; a bad one is a usage error."""
    try:
        return duration_us(text) / SECOND
    except ValueError as error:
        raise typer.BadParameter(f"{error}, or '60s'", param_hint="--for") from error


def run(
    folder: Path, *, port: int | None, seconds: float | None, until_idle: bool, json: bool
) -> int:
    """Run a project until it is stopped."""
    from headrace.run import loop

    printer = ProgressPrinter(console())
    report: Callable[[str, dict[str, Any]], None] = print_json_line if json else printer.print
    try:
        summary = loop.run(
            load(folder), port=port, seconds=seconds, until_idle=until_idle, report=report
        )
    except Exception as error:
        if not json:
            raise
        return print_failed(error)
    finally:
        printer.stop()
    if json:
        print_json_line("summary", msgspec.to_builtins(summary))
    else:
        show_summary(summary, printer.screen)
    return 0 if summary.ok else 1


def print_json_line(kind: str, fields: dict[str, Any]) -> None:
    print_json({"kind": kind, **fields})


def print_failed(error: Exception) -> int:
    """Print the last line of a run that failed; returns the exit code."""
    fields, code = failure_of(error)
    print_json_line("failed", fields)
    return code


def show_summary(summary: Any, screen: Console) -> None:
    """The counters of the run, and whether all balances and audits are exact."""
    for stream, balance in summary.balance.items():
        show(screen, balance_line(stream, balance))
    show(screen, dim(_done(summary)))
    compared, differences = summary.rows_compared, plural(summary.differences, "difference")
    off = sum(1 for balance in summary.balance.values() if balance.off)
    balances = f"{plural(off, 'balance')} off" if off else "every balance is exact"
    audit = "no audit" if compared is None else f"{plural(compared, 'row')} compared by the audit"
    line = f"{balances}; {audit}, {differences}"
    show(screen, good(f"ok: {line}") if summary.ok else bad(f"not ok: {line}"))
    if summary.behind:
        waiting, style = plural(summary.behind, "event"), dim if summary.ok else bad
        show(screen, style(f"  {waiting} had not been processed when the run ended"))
    for view, many in summary.differing.items():
        found = plural(many, "difference")
        show(screen, Text(f"  {view}: {found}; see: {audit_command(view)}"))


def _done(summary: Any) -> str:
    built = (
        f"{plural(summary.generations, 'generation')} of {plural(summary.events_built, 'event')}"
    )
    return (
        f"this run: ready after {summary.start_seconds:.0f} s, ran {summary.run_seconds:.0f} s, "
        f"stopped in {summary.stop_seconds:.0f} s; {plural(summary.accepted, 'event')} accepted, "
        f"{plural(summary.epochs, 'epoch')}, {built}"
    )


class ProgressPrinter:
    """Prints reports for a person; has the progress line, and the number of skipped reports."""

    def __init__(self, screen: Console) -> None:
        self.screen = screen
        self._line: Status | None = None
        self._skipped = _EVERY

    def print(self, kind: str, fields: dict[str, Any]) -> None:
        if kind == "progress":
            self._progress(progress_text(fields))
        else:
            self.screen.print(report_line(kind, fields), soft_wrap=True)

    def stop(self) -> None:
        """Remove the progress line."""
        if self._line is not None:
            self._line.stop()
            self._line = None

    def _progress(self, text: str) -> None:
        if self.screen.is_terminal:
            if self._line is None:
                self._line = self.screen.status(dim(text))
                self._line.start()
            self._line.update(dim(text))
            return
        self._skipped += 1
        if self._skipped >= _EVERY:
            self._skipped = 0
            self.screen.print(dim(text), soft_wrap=True)


def report_line(kind: str, fields: dict[str, Any]) -> Text:
    """One report as one line."""
    match kind:
        case "serving":
            return _serving(fields)
        case "first_token":
            return _first_token(fields)
        case "exposed":
            return bad(
                f"warning: {fields['host']} is not a loopback address and there is no TLS, so "
                "tokens and events are not encrypted; set http.tls_cert and http.tls_key"
            )
        case "starting":
            return dim(f"starting {fields.get('name', '')}")
        case "engine":
            return dim(f"Spark is running on {fields.get('master', '')}")
        case "ready":
            return _ready(fields)
        case "generation":
            return _generation(fields)
        case "problem":
            return bad(f"problem: {fields.get('message', '')}")
    return Text(" ".join([kind, *_pairs(fields)]), style="dim")


def _serving(fields: dict[str, Any]) -> Text:
    """The URL, and a login link for a browser."""
    line = good(f"serving at {fields['url']}")
    return line.append(f"\n  login link, for one use: {fields['login']}", style="default")


def _first_token(fields: dict[str, Any]) -> Text:
    line = Text(f"  the first user is {fields['user']}; the token is not shown again:")
    return line.append(f"\n  export HEADRACE_TOKEN={fields['token']}", style="bold")


def _ready(fields: dict[str, Any]) -> Text:
    """The project is ready, and example queries."""
    stops = f"stops after {fields['for']:g} s, or" if fields.get("for") else "stop"
    line = good(f"ready after {fields.get('seconds', 0):.1f} s; {stops} with Ctrl-C")
    views = fields.get("views") or []
    if views:
        line.append(f"\n  try: headrace query 'SELECT * FROM {views[0]}'", style="default")
        line.append(f"\n  or: {_curl(fields.get('url', ''), views[0])}", style="default")
        line.append(f"\n  views: {', '.join(views)}", style="dim")
    return line


def _curl(url: str, view: str) -> str:
    return f'curl -H "Authorization: Bearer $HEADRACE_TOKEN" {url}/v1/views/{view}'


def _generation(fields: dict[str, Any]) -> Text:
    differences = fields.get("differences") or 0
    boundary = fields.get("boundary", "")
    shown = ",".join(map(str, boundary)) if isinstance(boundary, list | tuple) else boundary
    line = Text(f"{fields['stream']}: generation {fields['generation']} up to {shown}, ")
    found = plural(differences, "difference")
    line.append(bad(found) if differences else good(found))
    views = fields.get("differing") or {}
    named = ", ".join(f"{view} {many:,}" for view, many in views.items())
    return line.append(f" ({named}); see: {audit_command(next(iter(views)))}" if named else "")


def progress_text(fields: dict[str, Any]) -> str:
    """The newest counters; known ones have a format, others their names."""
    known = {
        "events_per_second": "{:,.0f} events/s",
        "lag_events": "{:,} behind",
        "epochs": "{:,} epochs",
        "generation": "generation {}",
    }
    parts = [
        form.format(fields[name]) for name, form in known.items() if fields.get(name) is not None
    ]
    wrong = ("problems", "warnings")
    parts += [plural(fields[name], name[:-1]) for name in wrong if fields.get(name)]
    rest = {name: value for name, value in fields.items() if name not in (*known, *wrong)}
    return " · ".join([*parts, *_pairs(rest)])


def _pairs(fields: dict[str, Any]) -> list[str]:
    return [
        f"{name.replace('_', ' ')} {value}" for name, value in fields.items() if value is not None
    ]
