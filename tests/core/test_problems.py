"""A problem is said once, until it is another; that it cannot be said stops nobody."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import structlog

from headrace.core.errors import DiskFull
from headrace.core.paths import hide_paths
from headrace.core.problems import Problems, reason_of


def test_a_problem_is_reported_once_until_its_sentence_changes_or_it_is_over() -> None:
    told = list[str]()
    problems = Problems("schedule", lambda kind, fields: told.append(f"{kind}: {fields}"))
    for sentence in ("no room", "no room", "no network"):
        problems.note("archive clicks", sentence)
    problems.over("archive clicks")
    problems.over("archive clicks")
    assert problems == {}
    problems.note("archive clicks", "no room")
    assert told == [
        f"problem: {{'message': '{said}'}}" for said in ("no room", "no network", "no room")
    ]


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
        problems.note("archive clicks", "no room", OSError(errno.ENOSPC, "no room"))
    finally:
        structlog.configure(**before)
    assert problems == {"archive clicks": "no room"}


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
