"""The process of a job: started in a session of its own, so that it outlives the server, and
identified by the lock that it holds.

A signal is sent only to the process that holds the lock: a pidfd is opened first and the process
compared afterwards, so that a reused pid is never signalled.
tests/server/test_process.py checks it with real processes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from headrace.core.time import iso, now_us
from headrace.define.layout import Layout
from headrace.run.launch_spec import LaunchSpec
from headrace.run.lock import LockHolder, holder, started_at

LOG_BYTES_MAX = 16 << 20
TAIL_BYTES_MAX = 1 << 20
# The command line of `run` or `check` for a launch; tests use a smaller program.
CommandLine = Callable[[str, LaunchSpec], Sequence[str]]


def job_command(verb: str, spec: LaunchSpec) -> list[str]:
    return [sys.executable, "-m", "headrace.run.job", verb, spec.text()]


def start(command: Sequence[str], log: Path, fields: dict[str, object]) -> subprocess.Popen[bytes]:
    """Start a job's process; its log begins with these fields."""
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.is_file() and log.stat().st_size > LOG_BYTES_MAX:
        log.replace(log.with_suffix(".log.1"))
    with log.open("ab") as file:
        file.write(msgspec.json.encode({"at": iso(now_us()), "kind": "start", **fields}) + b"\n")
        file.flush()
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def send_signal(layout: Layout, found: LockHolder, number: int) -> None:
    """Signal the process that holds the lock, if it is still this one."""
    try:
        handle = os.pidfd_open(found.pid)
    except (OSError, OverflowError):
        return
    try:
        if holder(layout) == found and started_at(found.pid) == found.started:
            signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)


def tail(log: Path, lines: int) -> list[str]:
    """The last lines of a log."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES_MAX))
            text = file.read()
    except FileNotFoundError:
        return []
    return text.decode("utf-8", "replace").splitlines()[-lines:]


def last_error(log: Path) -> str | None:
    """The error with which the newest start ended, if it logged one."""
    for line in reversed(tail(log, 1_000)):
        fields = _fields(line)
        if fields.get("kind") == "start":
            return None
        if fields.get("kind") == "failed":
            return f"{fields.get('condition')}: {fields.get('message')}"
    return None


def _fields(line: str) -> dict[str, object]:
    try:
        fields = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return {}
    return fields if isinstance(fields, dict) else {}


def exit_reason(code: int | None) -> str:
    """How a process ended that logged no error."""
    if code is None:
        return "it exited without an error message"
    if code < 0:
        return f"it was killed by {signal.Signals(-code).name}"
    return f"it exited with code {code}"
