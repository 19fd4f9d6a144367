"""One judgement of a project's health, and everybody who shows it says the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from typing import Any

import msgspec
import pytest
from rich.console import Console

from headrace.api.resources.status import ProjectStatus
from headrace.cli.frame import frame
from headrace.cli.rates import Rates
from headrace.cli.running import progress_text
from headrace.cli.status import render
from headrace.cli.top import NO_ALERTS
from headrace.core.problems import Problem
from headrace.core.time import SECOND
from headrace.define.settings import LogSettings
from headrace.run.health import disk_problems, problems_of, with_health
from headrace.run.metrics import exposition
from headrace.run.observatory.observed_project import RuntimeInfo
from headrace.run.offline import Offline
from headrace.serving.alert_metrics import AlertMetrics
from run.test_topology import nodes, offline, running, triggered

__all__ = ["offline"]  # the project of the graph's tests
SINCE = "2026-01-01T00:00:00Z"
LATE = "events of 'clicks' have waited for speed for more than 14s"


def judged(
    offline: Offline, state: str = "running", reason: str = "", problems: Sequence[Problem] = ()
) -> ProjectStatus:
    """The status as if the project ran, with these problems of workers and steps."""
    offline.runtime_info = lambda: RuntimeInfo(running=True, problems=problems)  # type: ignore[method-assign]
    plan = offline.deployed()
    return with_health(offline, plan, offline.status_of(state, reason, plan, problems))


def later(offline: Offline, seconds: int) -> None:
    now = offline.store.clock()
    offline.store.clock = lambda: now + seconds * SECOND


def everywhere(status: ProjectStatus) -> list[str]:
    """What `top`, `status` and the metrics show."""
    screen = Console(file=StringIO(), width=120, highlight=False, markup=False)
    for part in (frame(status, NO_ALERTS, Rates(lambda: 0.0), 120), *render(status)):
        screen.print(part)
    file: Any = screen.file
    return [file.getvalue(), exposition(status, AlertMetrics({}, {})).decode()]


def test_a_project_that_is_well_has_no_problems(offline: Offline) -> None:
    status = judged(offline)
    assert (status.state, status.reason, status.problems) == ("running", "", [])
    screen, metrics = everywhere(status)
    assert "no problems" in screen
    assert "headrace_running 1.0" in metrics
    assert 'headrace_problems{level="bad"} 0.0' in metrics


def test_events_that_wait_are_a_warning_everywhere(offline: Offline) -> None:
    later(offline, 20)
    status = judged(offline)
    assert status.problems == [Problem("speed", "clicks", "waiting", LATE, "warn")]
    assert status.state == "running"
    screen, metrics = everywhere(status)
    assert screen.count(f"warning: {LATE}") == 2
    assert "no problems" not in screen
    assert 'headrace_problems{level="warn"} 1.0' in metrics
    assert nodes(running(offline))["speed:clicks"].reason == LATE


def test_events_that_wait_for_long_are_a_problem_everywhere(offline: Offline) -> None:
    later(offline, 600)
    status = judged(offline)
    said = "events of 'clicks' have waited for speed for more than 1.4m"
    assert (status.state, status.reason) == ("degraded", said)
    screen, metrics = everywhere(status)
    assert screen.count(f"problem: {said}") == 2
    assert "headrace_running 0.0" in metrics


@pytest.mark.parametrize(
    ("key", "about"),
    [
        (("part", "schedule", "worker"), "schedule"),
        (("flow", "clicks", "speed"), "speed:clicks"),
        (("flow", "clicks", "archive"), "master:clicks"),
        (("source", "clicks", "connector"), "source:clicks"),
        (("table", "sections", "reload"), "table:sections"),
        (("part", "compile", "compile"), "compile"),
    ],
)
def test_what_a_worker_or_a_step_says_is_a_problem_once(
    offline: Offline, key: tuple[str, str, str], about: str
) -> None:
    status = judged(offline, problems=[Problem(*key, "it failed", since=SINCE)])
    (problem,) = status.problems
    assert (problem.about, problem.what, problem.since) == (about, key[2], SINCE)
    assert (problem.message, problem.level) == ("it failed", "bad")
    assert (status.state, status.reason) == ("degraded", "it failed")
    assert "problem: it failed" in everywhere(status)[0]


def test_problems_of_two_places_with_the_same_sentence_are_two_problems(offline: Offline) -> None:
    said = "the disk is full"
    archive, ledger = ("flow", "clicks", "archive"), ("part", "ledger", "tidy")
    status = judged(offline, problems=[Problem(*archive, said), Problem(*ledger, said)])
    assert [(one.about, one.message) for one in status.problems] == [
        ("master:clicks", said),
        ("ledger", said),
    ]


def test_records_that_were_passed_over_are_a_warning_of_their_source(offline: Offline) -> None:
    said = "stream 'clicks', file inbox/a.gz: it cannot be read beyond byte 7"
    status = judged(offline, problems=[Problem("source", "clicks", "records", said, "warn")])
    assert [(one.about, one.level) for one in status.problems] == [("source:clicks", "warn")]
    assert (status.state, status.streams[0].problem) == ("running", said)
    source = nodes(running(offline, Problem("source", "clicks", "records", said, "warn")))
    assert (source["source:clicks"].health, source["source:clicks"].reason) == ("warn", said)


def test_a_wrong_answer_is_a_problem(offline: Offline) -> None:
    plan = offline.deployed()
    offline.runtime_info = lambda: RuntimeInfo(running=True)  # type: ignore[method-assign]
    found = offline.status_of("running", "", plan)
    views = [msgspec.structs.replace(view, differences=2) for view in found.views[:1]]
    found = msgspec.structs.replace(found, views=[*views, *found.views[1:]])
    (problem,) = problems_of(offline, plan, found)
    said = (problem.about, problem.message, problem.level)
    assert said == (f"view:{views[0].name}", "the audit found 2 differences", "bad")


@pytest.mark.parametrize("state", ["starting", "stopping", "stopped"])
def test_a_project_that_does_not_run_yet_or_any_more_is_never_well(
    offline: Offline, state: str
) -> None:
    status = judged(offline, state, "views are being built")
    assert status.state == state
    screen, metrics = everywhere(status)
    assert f"{state}: views are being built" in screen
    assert "no problems" not in screen
    assert "headrace_running 0.0" in metrics


def test_nothing_waits_for_a_project_that_is_stopped(offline: Offline) -> None:
    later(offline, 20)
    triggered(offline, SECOND)
    assert offline.status().problems == []


def test_a_disk_without_room_is_a_problem(offline: Offline) -> None:
    state, settings = offline.layout.state, offline.project.settings
    project = replace(offline.project, settings=replace(settings, log=LogSettings()))
    assert disk_problems(state, project, free=lambda path: 256 << 20) == []
    (problem,) = disk_problems(state, project, free=lambda path: (256 << 20) - 1)
    assert (problem.about, problem.message) == (
        "disk",
        "the disk has less than 268,435,456 bytes left, so events are refused",
    )


def test_the_line_of_a_run_counts_the_problems() -> None:
    fields = {"events_per_second": 0, "lag_events": 31_600, "problems": 11, "warnings": 1}
    assert progress_text(fields) == "0 events/s · 31,600 behind · 11 problems · 1 warning"
    well = {"events_per_second": 5, "problems": 0, "warnings": 0}
    assert progress_text(well) == "5 events/s"
