"""One process runs a project. The kernel holds the lock, so it is gone when the process is,
however it ended.

The lock's file says who holds it, `run.json` where the running instance answers, and `run.token`
has the token for commands on this machine, for the owner's eyes only; all count only while the lock
is held. tests/run/test_lock.py checks it, with a process that is killed.
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

# A look at the lock holds it for an instant, which must not keep a process from its start.
_TRIES, _PAUSE_S = 10, 0.02


class Holder(msgspec.Struct, frozen=True):
    """The process that holds a lock. Its start tells it from a later process of the same number;
    its turn is the one that whoever started it gave it.
    """

    pid: int
    started: int
    turn: int = 0


class RunLock:
    """Held by the process that runs a project."""

    def __init__(self, layout: Layout, turn: int = 0) -> None:
        self.layout, self.turn = layout, turn
        self._handle: int | None = None

    def take(self) -> None:
        self.layout.make_state()
        handle = os.open(self.layout.lock, os.O_RDWR | os.O_CREAT, 0o600)
        if not _locked(handle):
            os.close(handle)
            url = running_url(self.layout)
            raise AlreadyRunning(
                "this project is already running" + (f" at {url}" if url else ""),
                hint="stop it first, or use another folder.",
            )
        self._handle = handle
        # Of a process that was killed: nobody should ask there.
        self._forget()
        said = Holder(os.getpid(), started_at(os.getpid()) or 0, self.turn)
        os.ftruncate(handle, 0)
        os.pwrite(handle, msgspec.json.encode(said), 0)

    def announce(self, url: str, token: str) -> None:
        """Say where this instance answers, and to which token."""
        _write(self.layout.token, token)
        _write(self.layout.running, json.dumps({"url": url, "pid": os.getpid()}))

    def release(self) -> None:
        if self._handle is not None:
            self._forget()
            os.close(self._handle)
            self._handle = None

    def _forget(self) -> None:
        self.layout.running.unlink(missing_ok=True)
        self.layout.token.unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    """In one step, so that nobody reads a half of it."""
    temporary = path.with_name(f"{path.name}.new")
    temporary.unlink(missing_ok=True)
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(handle, "w", encoding="utf-8") as file:
        file.write(text)
    temporary.replace(path)


def running_token(layout: Layout) -> str | None:
    """The token of the instance that runs, if this user may read it."""
    try:
        return layout.token.read_text("utf-8")
    except OSError:
        return None


def running_url(layout: Layout) -> str | None:
    """Where the project answers, if it runs."""
    if not _held(layout.lock):
        return None
    try:
        return str(json.loads(layout.running.read_text("utf-8"))["url"])
    except (OSError, json.JSONDecodeError, KeyError, TypeError):
        return None


def holder(layout: Layout) -> Holder | None:
    """The process that runs the project, if one does."""
    if not _held(layout.lock):
        return None
    try:
        return msgspec.json.decode(layout.lock.read_bytes(), type=Holder)
    except msgspec.DecodeError:
        return Holder(0, 0)  # it holds the lock and has not said its name yet


def started_at(pid: int) -> int | None:
    """When a process was started, in ticks since the boot; None where that cannot be read."""
    try:
        # The program's name comes before, in parentheses, and may have any character.
        after = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2]
    except OSError:
        return None
    return int(after.split()[19])


def _locked(handle: int) -> bool:
    for _ in range(_TRIES):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE_S)
        else:
            return True
    return False


def _held(path: Path) -> bool:
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    except PermissionError as error:
        raise Unavailable(
            "the project's state may not be read by this user",
            hint="run the command as the user who runs the project, or ask it over HTTP.",
        ) from error
    try:
        # Shared, so that two who look at once do not take each other for a process.
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
