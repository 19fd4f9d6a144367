"""A submitted project is compiled before it is a version, in a process of its own.

It is the project's own code that is loaded there, and a JVM that is started. One check runs at a
time, within a stated time; whatever is wrong comes back as the error that the compiler had.
tests/server/test_checking.py checks the ends it can come to.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Sequence

import msgspec

from headrace.api.client import error_of
from headrace.api.errors import ErrorShape
from headrace.core.errors import EngineFailed, LimitReached
from headrace.core.time import SECOND
from headrace.run.job import Checked, Names

_one = threading.Lock()


def check(command: Sequence[str], seconds_max_us: int) -> Names:
    """The names that the checked project defines; what is wrong with it is raised."""
    with _one:
        printed = _printed(command, seconds_max_us / SECOND)
    lines = printed.strip().splitlines()
    try:
        found = msgspec.json.decode(lines[-1] if lines else b"", type=Checked)
    except msgspec.DecodeError as error:
        raise EngineFailed(
            "the check of the project ended without a result",
            detail=printed[-500:].decode("utf-8", "replace").strip() or None,
        ) from error
    if found.names is None:
        raise error_of(msgspec.convert(found.error, ErrorShape))
    return found.names


def _printed(command: Sequence[str], seconds_max: float) -> bytes:
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        return process.communicate(timeout=seconds_max)[0]
    except subprocess.TimeoutExpired as error:
        raise LimitReached(
            f"the check of the project took more than {seconds_max:g} s",
            hint="see submit.check in server.toml.",
        ) from error
    finally:
        if process.poll() is None:
            # The JVM is in the same group; the session is its own, so nobody else is.
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
