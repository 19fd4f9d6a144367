"""What `headrace run` tells while a project runs. The run itself is played."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from headrace.api.resources.balance import Balance
from headrace.cli.running import progress_text, report_line, seconds_of
from headrace.core.errors import AlreadyRunning, HeadraceError
from headrace.define.project import Project
from headrace.run.loop import Summary

from .conftest import BALANCE

PROGRESS = {"events_per_second": 1203.4, "lag_events": 10, "epochs": 7, "generation": 2}
REPORTS: list[tuple[str, dict[str, Any]]] = [
    ("starting", {"name": "shop"}),
    ("serving", {"url": "http://127.0.0.1:8080", "login": "http://127.0.0.1:8080/#login=x"}),
    ("first_token", {"user": "admin", "token": "hr_x"}),
    ("exposed", {"host": "0.0.0.0"}),
    ("ready", {"seconds": 4.2, "url": "http://127.0.0.1:8080", "views": ["visitors", "busiest"]}),
    *[("progress", PROGRESS)] * 12,
    ("generation", {"stream": "clicks", "generation": 1, "boundary": [5, 6], "differences": 0}),
    ("problem", {"message": "the disk is full"}),
    ("stopping", {}),
]


class Play:
    """Plays `run.loop.run`: reports as listed and ends with a summary."""

    def __init__(self) -> None:
        self.asked: dict[str, Any] = {}
        self.balance = BALANCE
        self.ok = True
        self.compared: int | None = 40
        self.differing: dict[str, int] = {}
        self.behind = 0

    def __call__(self, project: Project, *, report: Any, **asked: Any) -> Summary:
        self.asked = asked
        for kind, fields in REPORTS:
            report(kind, fields)
        return Summary(
            18.2, 60.0, 9.1, 1203, 7, 2, 1180, self.compared, 0, {"clicks": self.balance},
            self.ok, self.differing, self.behind,
        )  # fmt: skip


@pytest.fixture
def play(shop: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    played = Play()
    monkeypatch.setattr("headrace.run.loop.run", played)
    return played


def test_a_run_tells_what_happens_and_sums_up(play: Play, call: Callable[..., Result]) -> None:
    result = call("run", "--for", "1 minute", "--port", "0", "--until-idle")
    assert result.exit_code == 0
    assert play.asked == {"port": 0, "seconds": 60.0, "until_idle": True}
    progress = "1,203 events/s · 10 behind · 7 epochs · generation 2"
    assert result.stdout.splitlines() == [
        "starting shop",
        "serving at http://127.0.0.1:8080",
        "  login link, for one use: http://127.0.0.1:8080/#login=x",
        "  the first user is admin; the token is not shown again:",
        "  export HEADRACE_TOKEN=hr_x",
        "warning: 0.0.0.0 is not a loopback address and there is no TLS, so tokens and "
        "events are not encrypted; set http.tls_cert and http.tls_key",
        "ready after 4.2 s; stop with Ctrl-C",
        "  try: headrace query 'SELECT * FROM visitors'",
        '  or: curl -H "Authorization: Bearer $HEADRACE_TOKEN" '
        "http://127.0.0.1:8080/v1/views/visitors",
        "  views: visitors, busiest",
        progress,
        progress,
        "clicks: generation 1 up to 5,6, 0 differences",
        "problem: the disk is full",
        "stopping",
        "clicks: accepted 1,203 = events 1,180 + duplicates 12 + dead letters 11 + in log 0 "
        "(off by 0)",
        "this run: ready after 18 s, ran 60 s, stopped in 9 s; 1,203 events accepted, 7 epochs, "
        "2 generations of 1,180 events",
        "ok: every balance is exact; 40 rows compared by the audit, 0 differences",
    ]


def test_a_run_that_is_stopped_by_hand_says_that_nothing_was_audited(
    play: Play, call: Callable[..., Result]
) -> None:
    play.compared = None
    last = call("run").stdout.splitlines()[-1]
    assert last == "ok: every balance is exact; no audit, 0 differences"


def test_a_run_in_json_is_one_line_a_report_and_the_summary(
    play: Play, call: Callable[..., Result]
) -> None:
    lines = [json.loads(line) for line in call("run", "--json").stdout.splitlines()]
    assert play.asked == {"port": None, "seconds": None, "until_idle": False}
    assert [line["kind"] for line in lines] == [*(kind for kind, _ in REPORTS), "summary"]
    assert lines[5] == {"kind": "progress", **PROGRESS}
    assert lines[-1]["balance"]["clicks"]["off"] == 0
    assert lines[-1]["ok"]


def test_a_run_in_json_that_fails_ends_with_a_line_like_the_others(
    shop: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Result]
) -> None:
    def stopped(project: Project, *, report: Any, **asked: Any) -> Summary:
        report("starting", {"name": "shop"})
        raise HeadraceError("the run was interrupted before it finished", hint="the log is whole.")

    monkeypatch.setattr("headrace.run.loop.run", stopped)
    result = call("run", "--json")
    assert result.exit_code == 1
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["kind"] for line in lines] == ["starting", "failed"]
    assert lines[-1]["message"] == "the run was interrupted before it finished"
    assert "the run was interrupted before it finished" in call("run").output


def test_a_run_in_json_that_fails_unexpectedly_ends_with_such_a_line_too(
    shop: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Result]
) -> None:
    def broken(project: Project, **_: Any) -> Summary:
        raise KeyError("lost")

    (shop / ".headrace").mkdir()
    monkeypatch.setattr("headrace.run.loop.run", broken)
    result = call("run", "--json")
    assert result.exit_code == 1
    (line,) = map(json.loads, result.stdout.splitlines())
    assert (line["kind"], line["condition"]) == ("failed", "Unexpected")
    assert line["message"] == "unexpected error: KeyError: 'lost'"
    assert line["detail"].startswith(f"the crash log is {shop / '.headrace'}")


def test_a_run_in_json_of_a_broken_project_ends_with_such_a_line_too(
    shop: Path, call: Callable[..., Result]
) -> None:
    (shop / "headrace.toml").write_text('colour = "red"\n')
    result = call("run", "--json")
    assert result.exit_code == 1
    (line,) = map(json.loads, result.stdout.splitlines())
    assert (line["kind"], line["condition"]) == ("failed", "BadProject")


def test_a_server_in_json_that_fails_ends_with_such_a_line_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Result]
) -> None:
    def serve(folder: Path, **_: Any) -> None:
        raise AlreadyRunning(f"a server of {folder} is already running")

    monkeypatch.setattr("headrace.server.serve.serve", serve)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    result = call("serve", "--home", str(tmp_path), "--json")
    assert result.exit_code == 5
    (line,) = map(json.loads, result.stdout.splitlines())
    assert (line["kind"], line["condition"]) == ("failed", "AlreadyRunning")


def test_a_run_that_computed_nothing_is_not_ok(play: Play, call: Callable[..., Result]) -> None:
    play.ok, play.behind = False, 31_600
    result = call("run", "--for", "1 minute")
    assert result.exit_code == 1
    assert "not ok: " in result.stdout
    assert result.stdout.splitlines()[-1] == (
        "  31,600 events had not been processed when the run ended"
    )


def test_an_interrupted_run_says_what_it_left_and_is_ok(
    play: Play, call: Callable[..., Result]
) -> None:
    play.behind = 31_600
    result = call("run")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == (
        "  31,600 events had not been processed when the run ended"
    )


def test_a_run_that_does_not_add_up_exits_with_1(play: Play, call: Callable[..., Result]) -> None:
    play.ok, play.balance = False, Balance(10, 9, 0, 0, 0)
    play.differing = {"totals": 1, "rule visits": 2}
    result = call("run")
    assert result.exit_code == 1
    assert "(off by 1)" in result.stdout
    assert "not ok: 1 balance off; " in result.stdout
    assert result.stdout.splitlines()[-2:] == [
        "  totals: 1 difference; see: headrace audit totals",
        "  rule visits: 2 differences; see: headrace audit visits",
    ]


def test_a_project_that_runs_already_is_unavailable(
    shop: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Result]
) -> None:
    def run(project: Project, **_: Any) -> Summary:
        raise AlreadyRunning("this project is already running at http://x")

    monkeypatch.setattr("headrace.run.loop.run", run)
    result = call("run")
    assert result.exit_code == 5
    assert "AlreadyRunning: this project is already running at http://x" in result.stderr


def test_time_may_be_given_in_any_unit() -> None:
    assert [seconds_of(text) for text in ("60s", "1500 ms", "2 minutes")] == [60.0, 1.5, 120.0]


def test_a_run_with_an_end_says_when_it_ends() -> None:
    said = report_line("ready", {"seconds": 18.24, "for": 60.0, "views": []})
    assert said.plain == "ready after 18.2 s; stops after 60 s, or with Ctrl-C"


def test_a_difference_is_counted_and_unknown_reports_are_told_by_their_names() -> None:
    fields = {"stream": "clicks", "generation": 2, "boundary": "5,6", "differences": 3}
    assert (
        report_line("generation", fields).plain == "clicks: generation 2 up to 5,6, 3 differences"
    )
    assert report_line("generation", fields | {"differing": {"totals": 1, "visits": 2}}).plain == (
        "clicks: generation 2 up to 5,6, 3 differences (totals 1, visits 2); "
        "see: headrace audit totals"
    )
    assert report_line("compacted", {"files_before": 40}).plain == "compacted files before 40"
    assert progress_text({"lag_events": 0, "uptime": 3, "x": None}) == "0 behind · uptime 3"
