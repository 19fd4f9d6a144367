"""The commands of a domain: submit, apply, roll back, pause, resume, restart, cancel.

Each is validated before anything changes. The files of a version are written before the database
refers to them; a folder without a reference is left from a crash and is replaced.
tests/server/test_domain.py checks each command and each refusal.
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
from headrace.run.launch_spec import LaunchSpec
from headrace.server.checking import ProjectChecker
from headrace.server.commands import Command, CommandResult, execute, find
from headrace.server.home import check_name
from headrace.server.job_supervisor import SupervisorContext
from headrace.server.package import unpack, write_files
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
from headrace.server.resources import JobResources, ResourceRequest
from headrace.server.settings import SubmitSettings

CHECK_MEMORY = "512m"
# The desired states in which a command is allowed, and the state after it.
SWITCHES: dict[str, tuple[tuple[Desired, ...], Desired]] = {
    "pause": ((RUNNING,), PAUSED),
    "resume": ((PAUSED,), RUNNING),
    "restart": ((RUNNING,), RUNNING),
    "cancel": ((RUNNING, PAUSED), CANCELLED),
}
_HINTS = {
    RUNNING: "`headrace job restart {0}` restarts it; `headrace apply DIR {0}` changes it.",
    PAUSED: "`headrace job resume {0}` resumes it.",
    CANCELLED: "`headrace submit DIR --name {0}` starts it again with its state.",
}


class Domain:
    """The jobs of one server. A change here is carried out by the job's supervisor, which
    `on_change` notifies.
    """

    def __init__(
        self,
        context: SupervisorContext,
        limits: SubmitSettings,
        on_change: Callable[[str], None],
        clock: Clock = now_us,
    ) -> None:
        self.home, self.database, self.capacity = context.home, context.database, context.capacity
        self._command, self._limits, self._on_change = context.command, limits, on_change
        self._clock, self._checker = clock, ProjectChecker()

    def stop(self) -> None:
        """Accept no more versions; a waiting submit gets an error."""
        self._checker.stop()

    def submit(self, command: Command, body: bytes, resources: ResourceRequest) -> CommandResult:
        """Create a job from a project."""

        def new_job(db: sqlite3.Connection, default: JobResources) -> Job:
            before = find_job(db, command.job)
            if before is not None and before.desired != CANCELLED:
                raise _wrong_state(before)
            return Job(
                command.job, command.user, RUNNING, 0, 0, resources.applied_to(default), "", ""
            )

        return self._submit_version(command, body, new_job)

    def apply(self, command: Command, body: bytes, resources: ResourceRequest) -> CommandResult:
        """Make a project the next version of a job."""

        def new_job(db: sqlite3.Connection, default: JobResources) -> Job:
            before = _active_job(db, command.job)
            return replace(before, place=resources.applied_to(before.place))

        return self._submit_version(command, body, new_job)

    def rollback(self, command: Command, number: int | None) -> CommandResult:
        """Make an earlier version the current one again."""
        with self.database.read() as db:
            if (before := find(db, command)) is not None:
                return before
            job = _active_job(db, command.job)
            version = _previous_version(db, job) if number is None else number
            read_version(db, job.name, version)
        # Later versions may have changed the streams' history.
        self._check(self.home.version(job.name, version), self.home.state(job.name).state)
        return self._execute(
            command, lambda db: self._write(db, replace(_active_job(db, job.name), version=version))
        )

    def switch(self, command: Command) -> CommandResult:
        """Pause, resume, restart or cancel a job."""
        allowed, after = SWITCHES[command.verb]

        def change(db: sqlite3.Connection) -> Job:
            job = read_job(db, command.job)
            if job.desired not in allowed:
                raise _wrong_state(job)
            return self._write(db, replace(job, desired=after))

        return self._execute(command, change)

    def _submit_version(
        self,
        command: Command,
        body: bytes,
        new_job: Callable[[sqlite3.Connection, JobResources], Job],
    ) -> CommandResult:
        """Check a project and make it a version of its job, if it is valid and fits."""
        files = unpack(body, self._limits)
        self.home.incoming.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.home.incoming) as scratch:
            folder = Path(scratch, "project")
            write_files(files, folder)
            default = JobResources(memory=load_settings(folder).spark.memory)
            with self.database.read() as db:
                if (before := find(db, command)) is not None:
                    return before
                self._check_capacity(db, new_job(db, default))  # before a JVM is started for it
            state = self.home.state(check_name(command.job)).state
            names = self._check(folder, state if state.is_dir() else Path(scratch, "state"))

            def change(db: sqlite3.Connection) -> Job:
                job, number = new_job(db, default), _next_number(db, command.job)
                digest = hashlib.sha256(body).hexdigest()
                add_version(db, job.name, number, digest, names, command.user, self._clock())
                made = self._write(db, replace(job, version=number))
                self._move(folder, self.home.version(job.name, number))
                return made

            return self._execute(command, change)

    def _move(self, folder: Path, version: Path) -> None:
        shutil.rmtree(version, ignore_errors=True)
        version.parent.mkdir(parents=True, exist_ok=True)
        folder.rename(version)

    def _check(self, folder: Path, state: Path) -> Names:
        spec = LaunchSpec(str(folder), str(state), 0, "local[1]", CHECK_MEMORY)
        return self._checker.check(self._command("check", spec), self._limits.check_us)

    def _write(self, db: sqlite3.Connection, job: Job) -> Job:
        self._check_capacity(db, job)
        return write_job(db, job, self._clock())

    def _check_capacity(self, db: sqlite3.Connection, job: Job) -> None:
        if job.desired == RUNNING:
            others = [other for other in jobs(db) if other.name != job.name]
            self.capacity.check(job.place, [o.place for o in others if o.desired == RUNNING])

    def _execute(
        self, command: Command, change: Callable[[sqlite3.Connection], Job]
    ) -> CommandResult:
        with self.database.write() as db:
            done = execute(db, command, self._clock(), lambda: change(db))
        self._on_change(command.job)
        return done


def _active_job(db: sqlite3.Connection, name: str) -> Job:
    """A job that is not cancelled."""
    job = read_job(db, name)
    if job.desired == CANCELLED:
        raise _wrong_state(job)
    return job


def _wrong_state(job: Job) -> Conflict:
    return Conflict(f"job '{job.name}' is {job.desired}", hint=_HINTS[job.desired].format(job.name))


def _next_number(db: sqlite3.Connection, job: str) -> int:
    return max((version.number for version in versions(db, job)), default=0) + 1


def _previous_version(db: sqlite3.Connection, job: Job) -> int:
    """The version before the current one."""
    before = [v.number for v in versions(db, job.name) if v.number < job.version]
    if not before:
        raise NotFound(f"job '{job.name}' has no version before version {job.version}")
    return before[0]
