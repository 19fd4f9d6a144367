"""A project made by `headrace new`, a service that answers as told, and a way to call commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from headrace.api.get_request import GetRequest
from headrace.api.resources.balance import Balance
from headrace.api.resources.dead_letters import DeadLetter, DeadLetters, DeadLettersRequest
from headrace.api.resources.rows import LateRequest, ReplayRequest, WhyRequest
from headrace.api.resources.status import (
    IdlePartition,
    ProjectStatus,
    StatusRequest,
    StreamStatus,
    ViewStatus,
)
from headrace.api.service import RebuildResult
from headrace.cli.main import app
from headrace.core.errors import HeadraceError, NotFound
from headrace.ingest.intake import Receipt
from headrace.serving.answer import Answer, AsOf, ColumnInfo
from headrace.serving.late import LateAnswer, LateWindow
from headrace.serving.store import AuditResult

BALANCE = Balance(1203, 1180, 12, 11, 0)
STATUS = ProjectStatus(
    "shop",
    "running",
    "",
    "2026-11-15T18:59:00Z",
    "http://127.0.0.1:8080",
    [
        StreamStatus(
            "clicks", "http", [603, 600], [603, 590], [603, 600], [500, 500], 3, 10, 7,
            "2026-11-15T19:04:30Z", BALANCE, watermark_gap_ms=95_000, watermark_held_by=1,
            idle=[IdlePartition(0, "2026-11-15T19:01:30Z")],
        )
    ],
    [
        ViewStatus("visitors", "mergeable", "live", "clicks", 42, 3, 0),
        ViewStatus("fresh", "mergeable", "building", "clicks", 0, 0),
        ViewStatus("busiest", "read", "read", "", 0, 0),
    ],
)  # fmt: skip
ANSWER = Answer(
    [
        {
            "url": "/home",
            "hour": {"start": "2026-11-15T19:00:00Z", "end": "2026-11-15T20:00:00Z"},
            "hits": 1203,
            "visitors": 88,
            "ms": 41.23456,
        },
        {"url": None, "hour": None, "hits": 1, "visitors": 1, "ms": None},
    ],
    {
        "clicks": AsOf(
            3, [500, 500], [603, 590], "2026-11-15T19:04:30Z", "2026-11-15T19:14:30Z", 430
        )
    },
    {
        "url": ColumnInfo("STRING", True),
        "hour": ColumnInfo("WINDOW", True),
        "hits": ColumnInfo("BIGINT", True),
        "visitors": ColumnInfo("BIGINT", False, 0.0163),
        "ms": ColumnInfo("DOUBLE", True),
    },
)


_HOUR = {"start": "2026-11-15T19:00:00Z", "end": "2026-11-15T20:00:00Z"}
LATENESS = LateAnswer(
    "visitors",
    [
        LateWindow({"url": "/home", "hour": _HOUR}, 1_200, 3, 95_000.0, 61_500.0, 2, 3, 1),
        LateWindow({"url": "/a", "hour": _HOUR}, 7, 2, 1.5, 1.25, 2, 2, 0),
        LateWindow({"url": None, "hour": _HOUR}, 0, 1, 3_600_000.0, 3_600_000.0, 0, None, 1),
        LateWindow({"url": "/b", "hour": _HOUR}, 4, 0, None, None, 0, None, 0),
    ],
    ANSWER.as_of,
)


@dataclass
class Told:
    """A service that answers what it was told to."""

    answer: Answer = ANSWER
    lateness: LateAnswer = LATENESS
    found: ProjectStatus = STATUS
    audits: list[AuditResult] = field(default_factory=list)
    letters: list[DeadLetter] = field(default_factory=list)
    reason: Any = None
    story: Any = None
    fails_at: int | None = None  # the number of the chunk that is refused
    error: BaseException = field(default_factory=lambda: HeadraceError("the log is gone"))
    asked: list[Any] = field(default_factory=list)
    closed: bool = False

    def submit(self, stream: str, records: list[bytes]) -> Future[Receipt]:
        self.asked.append((stream, len(records)))
        future: Future[Receipt] = Future()
        if len(self.asked) == self.fails_at:
            future.set_exception(self.error)
        else:
            future.set_result(Receipt(len(records), duplicates=1))
        return future

    def sql(self, text: str, limit: int | None = None, id: str | None = None) -> Answer:
        self.asked.append((text, limit))
        return self.answer

    def rebuild(self, view: str) -> RebuildResult:
        if view != "visitors":
            raise NotFound(f"there is no materialized view '{view}'")
        return RebuildResult(view, 4, 42, 0)

    def audit(self, view: str | None = None) -> list[AuditResult]:
        return [a for a in self.audits if view in (None, a.view)]

    def ask(self, question: GetRequest[Any]) -> Any:
        self.asked.append(question)
        match question:
            case StatusRequest():
                return self.found
            case LateRequest():
                return self.lateness
            case WhyRequest():
                return self.reason
            case ReplayRequest():
                return self.story
        assert isinstance(question, DeadLettersRequest)
        return DeadLetters(self.letters[: question.limit], len(self.letters))

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def call() -> Callable[..., Result]:
    """Call `headrace` with these arguments."""

    def call(*arguments: str, input: str | bytes | None = None) -> Result:
        return CliRunner().invoke(app, list(arguments), input=input)

    return call


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new project, with the current folder in it."""
    folder = tmp_path / "shop"
    assert CliRunner().invoke(app, ["new", str(folder)]).exit_code == 0
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def told(shop: Path, monkeypatch: pytest.MonkeyPatch) -> Told:
    """The service that commands on `shop` reach."""
    service = Told()
    monkeypatch.setattr("headrace.run.connect.connect", lambda project: service)
    return service


def document(result: Result) -> Any:
    """The one JSON document that a command printed."""
    lines = result.stdout.splitlines()
    assert len(lines) == 1, result.output
    assert "\x1b" not in result.stdout
    return json.loads(lines[0])
