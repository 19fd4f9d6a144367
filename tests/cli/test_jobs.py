"""The pages of the commands of jobs, and what they send."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from rich.console import Console
from typer.testing import Result

from headrace.cli.jobs import job_table
from headrace.core.errors import Conflict
from headrace.run.job import Names
from headrace.server import client
from headrace.server.commands import CommandResult
from headrace.server.package import unpack
from headrace.server.records import RUNNING, Job, JobVersion
from headrace.server.resources import JobResources, ResourceRequest
from headrace.server.settings import SubmitSettings
from headrace.server.shapes import JobList, JobStatus, VersionList

from .conftest import document

AT = "2026-11-15T19:00:00Z"
JOB = Job("shop", "ada", RUNNING, 2, 3, JobResources(2, "1g", tags=["ssd"]), AT, AT)
STATUS = JobStatus("shop", "running", "", "running", 2, "ada", JOB.place, AT, AT, 7)
FAILED = JobStatus("bank", "failed", "it died 8 times", "running", 1, "bob", JobResources(), AT, AT)
DEGRADED = JobStatus(
    "mill", "degraded", "every epoch fails", "running", 1, "bob", JOB.place, AT, AT, problems=2
)
VERSIONS = VersionList(2, [
    JobVersion(2, "d2", Names(["clicks"], ["visitors"], ["rule"]), "bob", AT),
    JobVersion(1, "d1", Names(["clicks"], ["visitors"]), "ada", AT),
])  # fmt: skip


class Server:
    """A server that answers as told and remembers what it was asked."""

    asked: ClassVar[list[tuple[Any, ...]]] = []

    def __init__(self, url: str, token: str | None, verify: Any) -> None:
        self.url = url

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None: ...

    def jobs(self) -> JobList:
        return JobList([STATUS, FAILED, DEGRADED])

    def job(self, job: str) -> JobStatus:
        return STATUS

    def versions(self, job: str) -> VersionList:
        return VERSIONS

    def logs(self, job: str, lines: int) -> list[str]:
        return ["one", "two"][-lines:]

    def submit_job(
        self, job: str, project: bytes, wish: ResourceRequest, id: str | None
    ) -> CommandResult:
        return self._done("submit", job, project, wish, id)

    def apply(
        self, job: str, project: bytes, wish: ResourceRequest, id: str | None
    ) -> CommandResult:
        return self._done("apply", job, project, wish, id)

    def rollback(self, job: str, version: int | None, id: str | None) -> CommandResult:
        return self._done("rollback", job, version, id)

    def switch(self, job: str, verb: str, id: str | None) -> CommandResult:
        if job == "bank":
            raise Conflict("job 'bank' is paused", hint="resume it.")
        return self._done(verb, job, id)

    def _done(self, verb: str, *asked: Any) -> CommandResult:
        self.asked.append((verb, self.url, *asked))
        return CommandResult(asked[-1] or "c1", verb, JOB)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    monkeypatch.setattr(client, "ServerRemote", Server)
    monkeypatch.setenv("HEADRACE_SERVER", "http://team:8080")
    Server.asked = []
    return Server.asked


def test_jobs_are_a_table_with_their_reasons(asked: list[Any], call: Callable[..., Result]) -> None:
    lines = [line.rstrip() for line in call("jobs").stdout.splitlines()]
    assert lines[0].split() == [
        "job", "state", "version", "owner", "place", "since", "deaths", "problems", "reason",
    ]  # fmt: skip
    assert lines[1].split() == [
        "shop", "running", "2", "ada", "2", "cores,", "1g,", "ssd", "2026-11-15", "19:00", "UTC",
        "0", "0",
    ]  # fmt: skip
    assert lines[2].endswith("it died 8 times")
    assert lines[3].split()[1] == "degraded"
    assert lines[3].endswith("0         2  every epoch fails")
    found = document(call("jobs", "--json"))["jobs"]
    assert [(job["name"], job["problems"]) for job in found] == [
        ("shop", 0), ("bank", 0), ("mill", 2),
    ]  # fmt: skip


def test_only_a_job_that_is_running_without_a_problem_is_green() -> None:
    screen = Console(file=StringIO(), width=200, force_terminal=True, color_system="standard")
    slow = msgspec.structs.replace(STATUS, problems=1)
    screen.print(job_table([STATUS, slow, FAILED, DEGRADED]))
    assert isinstance(screen.file, StringIO)
    states = re.findall(r"\x1b\[(\d+)m(running|failed|degraded)", screen.file.getvalue())
    assert states == [("32", "running"), ("33", "running"), ("31", "failed"), ("31", "degraded")]


def test_one_job_is_shown_with_its_versions(asked: list[Any], call: Callable[..., Result]) -> None:
    page = call("job", "show", "shop").stdout
    assert "2 (current)  2026-11-15 19:00 UTC  bob  visitors  clicks   rule" in page
    said = document(call("job", "show", "shop", "--json"))
    assert (said["job"]["pid"], said["current"]) == (7, 2)


def test_a_project_is_sent_with_its_place_and_its_name(
    asked: list[Any], call: Callable[..., Result], tmp_path: Path
) -> None:
    (tmp_path / "headrace.toml").write_text('name = "shop"\n')
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "alerts.ndjson").write_text("what it wrote is no part of it")
    folder = str(tmp_path)
    result = call("submit", folder, "--cores", "2", "--memory", "1g", "--tag", "ssd", "--id", "x")
    assert result.stdout.splitlines() == [
        "submit shop: version 2, desired state running",
        "  command x; see: headrace job show shop",
    ]
    verb, url, job, project, wish, id = asked[0]
    assert (verb, url, job, id) == ("submit", "http://team:8080", "shop", "x")
    assert wish == ResourceRequest(2, "1g", None, ["ssd"])
    assert set(unpack(project, SubmitSettings())) == {"headrace.toml"}
    call("submit", folder, "--name", "other", "--server", "http://here:1")
    assert asked[1][1:3] == ("http://here:1", "other")
    call("apply", folder, "shop")
    assert asked[2][2:] == ("shop", project, ResourceRequest(), None)


def test_a_folder_that_is_no_project_is_not_sent(
    asked: list[Any], call: Callable[..., Result], tmp_path: Path
) -> None:
    assert call("submit", str(tmp_path)).exit_code == 1
    assert call("apply", str(tmp_path), "shop").exit_code == 1
    assert asked == []


@pytest.mark.parametrize("verb", ["cancel", "restart", "pause", "resume"])
def test_switches_are_sent(asked: list[Any], call: Callable[..., Result], verb: str) -> None:
    assert document(call("job", verb, "shop", "--json"))["verb"] == verb
    assert asked == [(verb, "http://team:8080", "shop", None)]
    refused = call("job", verb, "bank")
    assert refused.exit_code == 1
    assert "Conflict: job 'bank' is paused" in refused.stderr


def test_a_version_is_rolled_back_to_and_a_log_is_shown(
    asked: list[Any], call: Callable[..., Result]
) -> None:
    call("rollback", "shop")
    call("rollback", "shop", "1")
    assert [each[3] for each in asked] == [None, 1]
    assert call("job", "logs", "shop", "--tail", "1").stdout == "two\n"
    assert document(call("job", "logs", "shop", "--json")) == {"lines": ["one", "two"]}


def test_without_a_server_it_is_told_how_to_start_one(
    call: Callable[..., Result], tmp_path: Path
) -> None:
    result = call("jobs", "--home", str(tmp_path))
    assert result.exit_code == 5
    assert f"Unavailable: the server in {tmp_path}" in result.stderr
