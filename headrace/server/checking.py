"""A submitted project is compiled before it is a version, in a process of its own.

The process loads the project's own code and starts a JVM. One check runs at a time, with a timeout;
errors are those of the compiler. When the server stops, the check is killed and its caller gets an
error.
tests/server/test_checking.py checks each outcome.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from headrace.api.client import error_of
from headrace.api.errors import ErrorBody
from headrace.core.errors import EngineFailed, LimitReached, Unavailable
from headrace.core.time import SECOND
from headrace.run.job import CheckResult, Names


class ProjectChecker:
    """Checks projects, one at a time, until it is stopped."""

    def __init__(self) -> None:
        self._one, self._changing = threading.Lock(), threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def check(self, command: Sequence[str], seconds_max_us: int) -> Names:
        """The names that the checked project defines; raises its first error."""
        with self._one:
            printed = self._printed(command, seconds_max_us / SECOND)
        lines = printed.strip().splitlines()
        try:
            found = msgspec.json.decode(lines[-1] if lines else b"", type=CheckResult)
        except msgspec.DecodeError as error:
            raise EngineFailed(
                "the project check exited without a result",
                detail=printed[-500:].decode("utf-8", "replace").strip() or None,
            ) from error
        if found.names is None:
            raise error_of(msgspec.convert(found.error, ErrorBody))
        return found.names

    def stop(self) -> None:
        """Kill the running check, and start no more."""
        with self._changing:
            self._stopped = True
            if self._process is not None:
                _kill(self._process)

    def _printed(self, command: Sequence[str], seconds_max: float) -> bytes:
        process = self._started(command)
        try:
            printed = process.communicate(timeout=seconds_max)[0]
        except subprocess.TimeoutExpired as error:
            raise LimitReached(
                f"the project check timed out after {seconds_max:g} seconds",
                hint="nothing was deployed; raise submit.check in server.toml to allow more time.",
            ) from error
        finally:
            with self._changing:
                self._process = None
            if process.poll() is None:
                _kill(process)
                process.communicate()
        if self._stopped:
            raise _shutting_down()
        return printed

    def _started(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        with self._changing:
            if self._stopped:
                raise _shutting_down()
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            return self._process


def _kill(process: subprocess.Popen[bytes]) -> None:
    # The JVM is in the same process group, and no other process is.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _shutting_down() -> Unavailable:
    return Unavailable(
        "the server is shutting down, and the project was not checked",
        detail="nothing has changed.",
        hint="retry when the server is running again.",
    )
