"""The process of a job: what it says when it cannot run, and what its check finds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from serving.bench import plan_of

from headrace.core.report import Report
from headrace.run import loop
from headrace.run.job import Names, main, names_of
from headrace.run.launch_spec import LaunchSpec

BROKEN = "CREATE VIEW v AS\nSELECT count(*) AS n FROM nowhere;\n"


def order(folder: Path, sql: str = "") -> str:
    (folder / "headrace.toml").write_text('name = "shop"\n')
    (folder / "shop.sql").write_text(sql)
    return LaunchSpec(str(folder), str(folder / "state"), 4).text()


def lines(printed: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed.splitlines()]


@pytest.mark.process
@pytest.mark.parametrize("verb", ["run", "check"])
def test_a_project_that_cannot_run_is_told_with_its_origin(tmp_path: Path, verb: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "headrace.run.job", verb, order(tmp_path, BROKEN)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    last = lines(ended.stdout)[-1]
    error = last["error"] if verb == "check" else last
    assert ended.returncode == 1
    assert (error["condition"], error["origin"]) == ("UnknownName", "shop.sql:2")
    assert error["message"] == "view 'v' reads 'nowhere', which is not defined"


def test_reports_are_lines_and_progress_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(project: Any, *, report: Report, turn: int, server_key: bytes | None) -> None:
        report("ready", {"turn": turn})
        report("progress", {"events_in": 1})

    monkeypatch.setattr(loop, "run", run)
    assert main(["run", order(tmp_path)]) == 0
    (said,) = lines(capsys.readouterr().out)
    assert (said["kind"], said["turn"]) == ("ready", 4)


def test_what_nobody_foresaw_is_told_and_traced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*_: object, **__: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(loop, "run", run)
    assert main(["run", order(tmp_path)]) == 1
    printed = capsys.readouterr()
    (said,) = lines(printed.out)
    assert said["message"] == "ZeroDivisionError: division by zero"
    assert (said["kind"], said["condition"]) == ("failed", "Unexpected")
    assert "Traceback" in printed.err


def test_the_names_of_a_plan_are_those_that_the_user_gave() -> None:
    plan = plan_of()
    assert names_of(plan) == Names(
        [stream.name for stream in plan.streams] + [d.name for d in plan.shown_derived],
        [view.name for view in plan.shown_views],
        [rule.name for rule in plan.rules],
    )
