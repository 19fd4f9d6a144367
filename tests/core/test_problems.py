"""A problem is said once, until it is another; that it cannot be said stops nobody."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import structlog

from headrace.core.errors import DiskFull
from headrace.core.paths import hide_paths
from headrace.core.problems import Problem, ProblemKey, Problems, deduplicated, reason_of

ARCHIVE = ProblemKey("flow", "clicks", "archive")
AT, LATER = "1970-01-01T00:00:00Z", "1970-01-01T00:00:01Z"


def test_a_problem_is_reported_once_until_its_sentence_changes_or_it_is_over() -> None:
    told = list[str]()
    problems = Problems("schedule", lambda kind, fields: told.append(f"{kind}: {fields}"))
    for sentence in ("no room", "no room", "no network"):
        problems.note(ARCHIVE, sentence)
    problems.over(ARCHIVE)
    problems.over(ARCHIVE)
    assert list(problems) == []
    problems.note(ARCHIVE, "no room")
    assert told == [
        f"problem: {{'message': '{said}'}}" for said in ("no room", "no network", "no room")
    ]


def test_a_problem_has_lasted_since_its_subject_first_failed_at_that() -> None:
    now = 0
    problems = Problems("schedule", clock=lambda: now)
    problems.note(ARCHIVE, "no room")
    now = 1_000_000
    problems.note(ARCHIVE, "no network")
    assert list(problems) == [Problem(*ARCHIVE, "no network", "bad", AT)]
    problems.over(ARCHIVE)
    problems.note(ARCHIVE, "no room")
    assert [one.since for one in problems] == [LATER]


def test_a_subject_that_is_gone_takes_its_problems_along_and_no_others() -> None:
    problems = Problems("schedule")
    stay = (
        ProblemKey("action", "stream clicks", "delivery"),
        ProblemKey("table", "clicks", "reload"),
    )
    for key in (ARCHIVE, ProblemKey("flow", "clicks", "tidy"), *stay):
        problems.note(key, "no room")
    problems.forget("flow", "clicks")
    assert [one.key for one in problems] == list(stay)


def test_a_warning_is_not_reported_as_a_failure() -> None:
    told = list[str]()
    problems = Problems("source", lambda kind, fields: told.append(kind))
    problems.note(ARCHIVE, "a line is too long", level="warn")
    assert (told, [one.level for one in problems]) == ([], ["warn"])


def test_of_two_problems_with_one_key_the_last_counts() -> None:
    first, last = Problem(*ARCHIVE, "failed"), Problem(*ARCHIVE, "hangs")
    assert deduplicated([first], [last]) == [last]


def test_a_problem_is_about_a_place_or_a_part_of_the_run() -> None:
    assert Problem("speed", "clicks", "waiting", "").about == "speed:clicks"
    assert Problem("part", "schedule", "worker", "").about == "schedule"


def test_a_problem_is_kept_though_neither_log_nor_terminal_can_be_written() -> None:
    def full(kind: str, fields: dict[str, object]) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    class Full:
        def error(self, *args: Any) -> None:
            full("", {})

    before = structlog.get_config()
    structlog.configure(logger_factory=lambda *args: Full())
    try:
        problems = Problems("schedule", full)
        problems.note(ARCHIVE, "no room", OSError(errno.ENOSPC, "no room"))
    finally:
        structlog.configure(**before)
    assert [(one.key, one.message) for one in problems] == [(ARCHIVE, "no room")]


def test_the_reason_of_a_trace_is_its_cause() -> None:
    java = """An error occurred while calling o1363.getResult.
: org.apache.spark.SparkException: Job aborted due to stage failure
\tat org.apache.spark.Exceptions.raise(Exceptions.scala:1)
Caused by: java.io.IOException: No space left on device
\t... 34 more"""
    assert reason_of(RuntimeError(java)) == "java.io.IOException: No space left on device"
    python = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "worker.py", line 1, in main
OSError: [Errno 28] No space left on device"""
    assert reason_of(RuntimeError(python)) == "OSError: [Errno 28] No space left on device"


def test_a_reason_is_one_line_and_bounded() -> None:
    assert reason_of(DiskFull("the disk is full", hint="make room.")) == "the disk is full"
    assert reason_of(KeyError()) == "KeyError"
    assert len(reason_of(ValueError("x" * 1_000))) == 300


def test_a_reason_names_no_folder_of_the_machine(tmp_path: Path) -> None:
    hide_paths(tmp_path)
    assert reason_of(OSError(errno.ENOSPC, "no room", f"{tmp_path}/log")) == (
        "OSError: [Errno 28] no room: '…/log'"
    )
    trace = f"An error occurred\nCaused by: java.io.IOException: {tmp_path}/log is full\n"
    assert reason_of(RuntimeError(trace)) == "java.io.IOException: …/log is full"
