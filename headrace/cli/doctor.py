"""`headrace doctor`: whether this machine can run the project, and if not, what to do.

It works without a project too: then the settings are the defaults and the folder the current one.
A headrace.toml that is not valid is itself a finding, and the other checkups run without it.
tests/cli/test_doctor.py checks the page and the exit code.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import headrace
from headrace.cli import checkups
from headrace.cli.checkups import Finding
from headrace.cli.report import Report
from headrace.client.table import table
from headrace.core.errors import HeadraceError
from headrace.core.time import now_us
from headrace.define.project import Project
from headrace.define.settings import Settings, load_settings

_STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}


def doctor(folder: Path) -> Report:
    """Run all checkups with the settings of a project."""
    settings, first = _settings(folder)
    project = Project(folder, settings, ())
    return report_findings([first, *run_checkups(project)])


def _settings(folder: Path) -> tuple[Settings, Finding]:
    try:
        settings = load_settings(folder)
    except HeadraceError as error:
        if (folder / "headrace.toml").exists():
            return Settings("none"), Finding("project", "fail", error.message, error.hint)
        do = "defaults are assumed; `headrace new DIR` creates a project."
        return Settings("none"), Finding("project", "warn", error.message, do)
    return settings, Finding("project", "ok", f"{settings.name} in {folder}")


def run_checkups(project: Project) -> list[Finding]:
    """Every checkup, with the settings of this project."""
    from headrace.define.layout import Layout
    from headrace.run.lock import running_url

    settings, state = project.settings, project.state
    there = _nearest(state)
    needed = checkups.memory_needed(
        settings.spark.memory, *[settings.query.memory] * settings.query.workers
    )
    layout = Layout.of(project)
    url = running_url(layout)
    return [
        checkups.python(),
        checkups.java(),
        # A running project has its memory already.
        checkups.memory(checkups.memory_available(), 0 if url else needed),
        checkups.disk(there, settings.log.free_bytes_min),
        checkups.writable(state, there),
        checkups.store(layout.store),
        checkups.fsync(there),
        checkups.clock(now_us, _newest_us(there)),
        checkups.port(settings.http.host, settings.http.port, url),
    ]


def _nearest(path: Path) -> Path:
    """The folder itself, or the nearest above it that exists."""
    return next(each for each in (path, *path.parents) if each.is_dir())


def _newest_us(folder: Path) -> int:
    """The newest modification time of our own files and of the state folder."""
    paths = [Path(headrace.__file__), folder, *folder.iterdir()]
    return max(int(path.stat().st_mtime * 1e6) for path in paths if path.exists())


def report_findings(findings: Sequence[Finding]) -> Report:
    """All findings, one per line; the exit code is 1 if one failed."""
    from rich.text import Text

    failed = any(finding.state == "fail" for finding in findings)
    rows: list[list[str | Text]] = [
        [Text(f.state, style=_STYLES[f.state]), f.name, f.found, Text(f.do or "", style="cyan")]
        for f in findings
    ]
    page = table("", "", "found", "what to do", rows=rows)
    return Report({"ok": not failed, "findings": findings}, [page], 1 if failed else 0)
