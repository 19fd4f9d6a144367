"""The lock that lets only one process run a project. It is a lock of the kernel, so it is released
when the process ends, even if it is killed.

The lock file has the process that holds it, `run.json` the URL of the running instance, and
`run.token` the token for commands on this machine, readable by the owner only. All are valid only
while the lock is held. tests/run/test_lock.py checks it, with a process that is killed.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path

import msgspec

from headrace.core.errors import AlreadyRunning, Unavailable
from headrace.define.layout import Layout

# Reading the lock's state acquires it for an instant, so acquiring it is tried several times.
_TRIES, _PAUSE_S = 10, 0.02


class LockHolder(msgspec.Struct, frozen=True):
    """The process that holds a lock. `started` distinguishes it from a later process with the same
    id; `turn` is the number of the launch, given by the server.
    """

    pid: int
    started: int
    turn: int = 0


class RunLock:
    """Held by the process that runs a project."""

    def __init__(self, layout: Layout, turn: int = 0) -> None:
        self.layout, self.turn = layout, turn
        self._handle: int | None = None

    def acquire(self) -> None:
        self.layout.make_state()
        handle = os.open(self.layout.lock, os.O_RDWR | os.O_CREAT, 0o600)
        if not _try_lock(handle):
            os.close(handle)
            url = running_url(self.layout)
            raise AlreadyRunning(
                "this project is already running" + (f" at {url}" if url else ""),
                hint="stop it first, or use another folder.",
            )
        self._handle = handle
        self._remove_address()  # left by a process that was killed
        holder = LockHolder(os.getpid(), started_at(os.getpid()) or 0, self.turn)
        os.ftruncate(handle, 0)
        os.pwrite(handle, msgspec.json.encode(holder), 0)

    def announce(self, url: str, token: str) -> None:
        """Write the URL and the token of this instance."""
        _write(self.layout.token, token)
        _write(self.layout.running, json.dumps({"url": url, "pid": os.getpid()}))

    def release(self) -> None:
        if self._handle is not None:
            self._remove_address()
            os.close(self._handle)
            self._handle = None

    def _remove_address(self) -> None:
        self.layout.running.unlink(missing_ok=True)
        self.layout.token.unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    """Write atomically, so that no reader sees a part of the text."""
    temporary = path.with_name(f"{path.name}.new")
    temporary.unlink(missing_ok=True)
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(handle, "w", encoding="utf-8") as file:
        file.write(text)
    temporary.replace(path)


def running_token(layout: Layout) -> str | None:
    """The token of the running instance, if this user may read it."""
    try:
        return layout.token.read_text("utf-8")
    except OSError:
        return None


def running_url(layout: Layout) -> str | None:
    """The URL of the running instance, if there is one."""
    if not _is_locked(layout.lock):
        return None
    try:
        return str(json.loads(layout.running.read_text("utf-8"))["url"])
    except (OSError, json.JSONDecodeError, KeyError, TypeError):
        return None


def holder(layout: Layout) -> LockHolder | None:
    """The process that runs the project, if there is one."""
    if not _is_locked(layout.lock):
        return None
    try:
        return msgspec.json.decode(layout.lock.read_bytes(), type=LockHolder)
    except msgspec.DecodeError:
        return LockHolder(0, 0)  # it has the lock and has not written the file yet


def started_at(pid: int) -> int | None:
    """When a process was started, in ticks since the boot; None if that cannot be read."""
    try:
        # The fields follow the program's name, which is in parentheses and may have any character.
        after = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2]
    except OSError:
        return None
    return int(after.split()[19])


def _try_lock(handle: int) -> bool:
    for _ in range(_TRIES):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE_S)
        else:
            return True
    return False


def _is_locked(path: Path) -> bool:
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    except PermissionError as error:
        raise Unavailable(
            "this user may not read the project's state",
            hint="run the command as the user who runs the project, or use its URL.",
        ) from error
    try:
        # A shared lock, so that two readers at the same time do not block each other.
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
