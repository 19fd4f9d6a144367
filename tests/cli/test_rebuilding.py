"""The progress of a rebuild, at a terminal and elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from rich.text import Text
from typer.testing import Result

from headrace.api.get_request import GetRequest
from headrace.api.resources.view_detail import RebuildProgress
from headrace.api.service import RebuildResult
from headrace.cli import rebuilding
from headrace.cli.rebuilding import progress
from headrace.core.errors import NotReady
from headrace.core.time import SECOND, from_iso

from .conftest import Told, document

AT = "2026-11-15T19:00:00Z"


def rebuild(started_at: str | None = AT, expected_ms: int | None = 10_000) -> RebuildProgress:
    state = "running" if started_at else "waiting"
    return RebuildProgress(state, AT, started_at, 1_203, expected_ms)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "after_s", "completed", "total", "state"),
    [
        (rebuild(started_at=None), 0, None, None, "waiting for the build before it"),
        (rebuild(), 0, 0, 10_000, "1,203 events, about 10 s left"),
        (rebuild(), 7.5, 7_500, 10_000, "1,203 events, about 2 s left"),
        (rebuild(), 11, 10_000, 10_000, "1,203 events, longer than the largest build so far"),
        (
            rebuild(expected_ms=None),
            3,
            None,
            None,
            "1,203 events, no earlier build to estimate the time from",
        ),
    ],
)
def test_progress_is_the_time_that_has_passed_of_the_time_expected(
    found: RebuildProgress, after_s: float, completed: int | None, total: int | None, state: str
) -> None:
    said = progress(found, from_iso(AT) + int(after_s * SECOND))
    assert (said.get("completed"), said["total"], said["state"]) == (completed, total, state)


@dataclass
class Slow(Told):
    """A project whose rebuild lasts until it was asked twice how far it is."""

    times: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    many: int = 0

    def ask(self, question: GetRequest[Any]) -> Any:
        self.times.release()
        self.many += 1
        if self.many == 1:
            raise NotReady("the project is still starting")
        return type("About", (), {"rebuild": rebuild()})

    def rebuild(self, view: str) -> RebuildResult:
        for _ in range(3):
            assert self.times.acquire(timeout=20)
        return super().rebuild(view)


@pytest.fixture
def slow(told: Told, monkeypatch: pytest.MonkeyPatch) -> Slow:
    service = Slow()
    monkeypatch.setattr("headrace.run.connect.connect", lambda project: service)
    monkeypatch.setattr(rebuilding, "_POLL_S", 0.2)
    return service


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "140")


@pytest.mark.usefixtures("terminal")
def test_at_a_terminal_a_rebuild_has_a_bar(slow: Slow, call: Callable[..., Result]) -> None:
    result = call("rebuild", "visitors")
    seen = Text.from_ansi(result.stderr).plain
    assert "rebuilding visitors" in seen
    assert "1,203 events, longer than the largest build so far" in seen
    assert Text.from_ansi(result.stdout).plain.startswith("visitors: generation 4, 42 rows")


@pytest.mark.usefixtures("terminal")
def test_with_json_a_rebuild_is_quiet(told: Told, call: Callable[..., Result]) -> None:
    result = call("rebuild", "visitors", "--json")
    assert (document(result)["generation"], result.stderr) == (4, "")


def test_in_a_pipe_a_rebuild_is_quiet(told: Told, call: Callable[..., Result]) -> None:
    result = call("rebuild", "visitors")
    assert (result.exit_code, result.stderr) == (0, "")
