"""What can be asked of a domain: submit, apply, roll back, pause, resume, restart, cancel.

Each is a command, checked as far as it can be before anything changes. A version's files are in
their folder before the database speaks of them; a folder that it does not speak of is left from a
crash and is replaced. tests/server/test_domain.py checks each command and each refusal.
"""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from headrace.core.errors import Conflict, NotFound
from headrace.core.time import Clock, now_us
from headrace.define.settings import load_settings
from headrace.run.job import Names
from headrace.run.order import Order
from headrace.server.checking import Checker
from headrace.server.commands import Command, CommandResult, carry_out, find
from headrace.server.home import checked_name
from headrace.server.package import unpack, write_files
from headrace.server.place import Place
from headrace.server.records import (
    CANCELLED,
    PAUSED,
    RUNNING,
    Desired,
    Job,
    add_version,
    find_job,
    jobs,
    read_job,
    read_version,
    versions,
    write_job,
)
from headrace.server.settings import SubmitSettings
from headrace.server.watcher import Tools
from headrace.server.wish import Wish

CHECK_MEMORY = "512m"
# What a job must be for a command, and what it is after it.
SWITCHES: dict[str, tuple[tuple[Desired, ...], Desired]] = {
    "pause": ((RUNNING,), PAUSED),
    "resume": ((PAUSED,), RUNNING),
    "restart": ((RUNNING,), RUNNING),
    "cancel": ((RUNNING, PAUSED), CANCELLED),
}
_WAYS_OUT = {
    RUNNING: "`headrace job restart {0}` starts it anew; `headrace apply DIR {0}` changes it.",
    PAUSED: "`headrace job resume {0}` goes on with it.",
    CANCELLED: "`headrace submit DIR --name {0}` begins it again, with what it had.",
}


class Domain:
    """The jobs of one server. What is decided here is done by their watchers: `decided` is told
    which job to look at.
    """

    def __init__(
        self,
        tools: Tools,
        limits: SubmitSettings,
        decided: Callable[[str], None],
        clock: Clock = now_us,
    ) -> None:
        self.home, self.database, self.room = tools.home, tools.database, tools.room
        self._command, self._limits, self._decided = tools.command, limits, decided
        self._clock, self._checker = clock, Checker()

    def stop(self) -> None:
        """Take in no more versions; whoever waits for a check is told so."""
        self._checker.stop()

    def submit(self, command: Command, body: bytes, wish: Wish) -> CommandResult:
        """Make a job of a project."""

        def wanted(db: sqlite3.Connection, default: Place) -> Job:
            before = find_job(db, command.job)
            if before is not None and before.desired != CANCELLED:
                raise _not_now(before)
            return Job(command.job, command.who, RUNNING, 0, 0, wish.over(default), "", "")

        return self._bring(command, body, wanted)

    def apply(self, command: Command, body: bytes, wish: Wish) -> CommandResult:
        """Make a project the next version of a job."""

        def wanted(db: sqlite3.Connection, default: Place) -> Job:
            before = _going(db, command.job)
            return replace(before, place=wish.over(before.place))

        return self._bring(command, body, wanted)

    def rollback(self, command: Command, number: int | None) -> CommandResult:
        """Make an earlier version the current one again."""
        with self.database.read() as db:
            if (before := find(db, command)) is not None:
                return before
            job = _going(db, command.job)
            wanted = _earlier(db, job) if number is None else number
            read_version(db, job.name, wanted)
        # What has been deployed since may have changed the streams' history.
        self._check(self.home.version(job.name, wanted), self.home.state(job.name).state)
        return self._carry_out(
            command, lambda db: self._write(db, replace(_going(db, job.name), version=wanted))
        )

    def switch(self, command: Command) -> CommandResult:
        """Pause, resume, restart or cancel a job."""
        allowed, after = SWITCHES[command.verb]

        def change(db: sqlite3.Connection) -> Job:
            job = read_job(db, command.job)
            if job.desired not in allowed:
                raise _not_now(job)
            return self._write(db, replace(job, desired=after))

        return self._carry_out(command, change)

    def _bring(
        self, command: Command, body: bytes, wanted: Callable[[sqlite3.Connection, Place], Job]
    ) -> CommandResult:
        """Check a project and make it a version, if it is right and its job can have it."""
        files = unpack(body, self._limits)
        self.home.incoming.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.home.incoming) as scratch:
            folder = Path(scratch, "project")
            write_files(files, folder)
            default = Place(memory=load_settings(folder).spark.memory)
            with self.database.read() as db:
                if (before := find(db, command)) is not None:
                    return before
                self._check_room(db, wanted(db, default))  # before a JVM is started for it
            state = self.home.state(checked_name(command.job)).state
            names = self._check(folder, state if state.is_dir() else Path(scratch, "state"))

            def change(db: sqlite3.Connection) -> Job:
                job, number = wanted(db, default), _next_number(db, command.job)
                digest = hashlib.sha256(body).hexdigest()
                add_version(db, job.name, number, digest, names, command.who, self._clock())
                made = self._write(db, replace(job, version=number))
                self._move(folder, self.home.version(job.name, number))
                return made

            return self._carry_out(command, change)

    def _move(self, folder: Path, version: Path) -> None:
        shutil.rmtree(version, ignore_errors=True)
        version.parent.mkdir(parents=True, exist_ok=True)
        folder.rename(version)

    def _check(self, folder: Path, state: Path) -> Names:
        order = Order(str(folder), str(state), 0, "local[1]", CHECK_MEMORY)
        return self._checker.check(self._command("check", order), self._limits.check_us)

    def _write(self, db: sqlite3.Connection, job: Job) -> Job:
        self._check_room(db, job)
        return write_job(db, job, self._clock())

    def _check_room(self, db: sqlite3.Connection, job: Job) -> None:
        if job.desired == RUNNING:
            others = [other for other in jobs(db) if other.name != job.name]
            self.room.check(job.place, [o.place for o in others if o.desired == RUNNING])

    def _carry_out(
        self, command: Command, change: Callable[[sqlite3.Connection], Job]
    ) -> CommandResult:
        with self.database.write() as db:
            done = carry_out(db, command, self._clock(), lambda: change(db))
        self._decided(command.job)
        return done


def _going(db: sqlite3.Connection, name: str) -> Job:
    """A job that is not cancelled."""
    job = read_job(db, name)
    if job.desired == CANCELLED:
        raise _not_now(job)
    return job


def _not_now(job: Job) -> Conflict:
    return Conflict(
        f"job '{job.name}' is {job.desired}", hint=_WAYS_OUT[job.desired].format(job.name)
    )


def _next_number(db: sqlite3.Connection, job: str) -> int:
    return max((version.number for version in versions(db, job)), default=0) + 1


def _earlier(db: sqlite3.Connection, job: Job) -> int:
    """The version before the current one."""
    before = [v.number for v in versions(db, job.name) if v.number < job.version]
    if not before:
        raise NotFound(f"job '{job.name}' has no version before version {job.version}")
    return before[0]
