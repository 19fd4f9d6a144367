"""The process of a job: started in a session of its own, so that it outlives the server, and known
by the lock that it holds.

A signal goes only to the process that holds the lock: it is taken hold of first (a pidfd) and
compared then, so that a number that the system has given to another process hits nobody.
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
from headrace.run.lock import Holder, holder, started_at
from headrace.run.order import Order

LOG_BYTES_MAX = 16 << 20
TAIL_BYTES_MAX = 1 << 20
# The command line of `run` or `check` for an order; tests hand in that of a smaller program.
CommandLine = Callable[[str, Order], Sequence[str]]


def job_command(verb: str, order: Order) -> list[str]:
    return [sys.executable, "-m", "headrace.run.job", verb, order.text()]


def start(command: Sequence[str], log: Path, said: dict[str, object]) -> subprocess.Popen[bytes]:
    """Start a job's process; its log begins with what was said."""
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.is_file() and log.stat().st_size > LOG_BYTES_MAX:
        log.replace(log.with_suffix(".log.1"))
    with log.open("ab") as file:
        file.write(msgspec.json.encode({"at": iso(now_us()), "kind": "start", **said}) + b"\n")
        file.flush()
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def send_signal(layout: Layout, found: Holder, number: int) -> None:
    """Signal the process that holds the lock, if it still is this one."""
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


def last_words(log: Path) -> str | None:
    """The error sentence with which the newest start ended, if it said one."""
    for line in reversed(tail(log, 1_000)):
        said = _fields(line)
        if said.get("kind") == "start":
            return None
        if said.get("kind") == "failed":
            return f"{said.get('condition')}: {said.get('message')}"
    return None


def _fields(line: str) -> dict[str, object]:
    try:
        said = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return {}
    return said if isinstance(said, dict) else {}


def ended_words(code: int | None) -> str:
    """How a process ended that said nothing."""
    if code is None:
        return "it ended without a word"
    if code < 0:
        return f"it was killed by {signal.Signals(-code).name}"
    return f"it ended with exit code {code}"
