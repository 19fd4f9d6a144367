"""A job's process is known by its lock, and only that process is ever signalled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from run.waiting import wait

from headrace.run.launch_spec import LaunchSpec
from headrace.run.lock import LockHolder, holder, started_at
from headrace.server.home import Home
from headrace.server.process import (
    exit_reason,
    job_command,
    last_error,
    send_signal,
    start,
    tail,
)

from .conftest import stand_in

pytestmark = pytest.mark.process


def test_a_started_process_writes_into_its_log_and_has_a_session_of_its_own(
    tmp_path: Path,
) -> None:
    code = "import os; print(os.getsid(0) == os.getpid(), flush=True)"
    log = tmp_path / "log" / "run.log"
    process = start([sys.executable, "-S", "-c", code], log, {"version": 1})
    assert process.wait(60) == 0
    first, second = tail(log, 10)
    assert msgspec.json.decode(first)["kind"] == "start"
    assert second == "True"


def test_a_long_log_is_begun_anew(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    with log.open("wb") as file:
        file.truncate((16 << 20) + 1)
    start([sys.executable, "-S", "-c", ""], log, {}).wait(60)
    assert len(tail(log, 10)) == 1
    assert log.with_suffix(".log.1").is_file()


def test_only_the_holder_of_the_lock_is_signalled(home: Home) -> None:
    layout = home.state("shop")
    process = subprocess.Popen(stand_in("run", LaunchSpec("x", str(layout.state), 3)))
    wait(lambda: layout.running.is_file())
    found = holder(layout)
    assert found == LockHolder(process.pid, started_at(process.pid) or 0, 3)
    for other in (
        LockHolder(os.getpid(), found.started, 3),
        LockHolder(found.pid, found.started + 1, 3),
        LockHolder(found.pid, found.started, 4),
        LockHolder(0, 0),
        LockHolder(1 << 40, 0),
    ):
        send_signal(layout, other, signal.SIGKILL)
    assert process.poll() is None
    send_signal(layout, found, signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL
    send_signal(layout, found, signal.SIGKILL)


def test_the_last_words_are_those_of_the_newest_start(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    assert last_error(log) is None
    failed = '{"kind":"failed","condition":"PortInUse","message":"port 1 is in use"}'
    log.write_text(f'{{"kind":"start"}}\n{failed}\nTraceback …\n[1]\n')
    assert last_error(log) == "PortInUse: port 1 is in use"
    log.write_text(f'{failed}\n{{"kind":"start"}}\n{{"kind":"ready"}}\n')
    assert last_error(log) is None


def test_an_end_without_words_is_told_by_its_code() -> None:
    assert exit_reason(-9) == "it was killed by SIGKILL"
    assert exit_reason(3) == "it exited with code 3"
    assert exit_reason(None) == "it exited without an error message"


def test_the_command_of_a_job_is_one_program_with_one_order() -> None:
    spec = LaunchSpec("v/1", "state", 2, "local[1]", "1g")
    assert job_command("run", spec)[1:4] == ["-m", "headrace.run.job", "run"]
    assert LaunchSpec.read(job_command("check", spec)[-1]) == spec
