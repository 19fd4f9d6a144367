"""Jobs and their versions in the domain's database; each function runs inside the caller's
transaction. tests/server/test_records.py checks each.
"""

from __future__ import annotations

import sqlite3
from typing import Any, Literal

import msgspec

from headrace.core.errors import Conflict, NotFound
from headrace.core.time import iso
from headrace.run.job import Names
from headrace.server.resources import JobResources

Desired = Literal["running", "paused", "cancelled"]
RUNNING: Desired = "running"
PAUSED: Desired = "paused"
CANCELLED: Desired = "cancelled"
_JOB = "name, owner, desired, version, turn, place, submitted_at, changed_at, failure"


class Job(msgspec.Struct, frozen=True):
    """The desired state of a job. Each change has a higher turn, which requires a new process."""

    name: str
    owner: str
    desired: Desired
    version: int
    turn: int
    place: JobResources
    submitted_at: str
    changed_at: str
    failure: str | None = None  # why it is not restarted any more

    @property
    def should_run(self) -> bool:
        """Whether its process should run."""
        return self.desired == RUNNING and self.failure is None


class JobVersion(msgspec.Struct, frozen=True):
    """One submitted project."""

    number: int
    digest: str
    names: Names
    submitted_by: str
    submitted_at: str


class CatalogName(msgspec.Struct, frozen=True):
    """A name of the catalog."""

    name: str
    kind: str
    job: str


def jobs(db: sqlite3.Connection) -> list[Job]:
    return [_job(row) for row in db.execute(f"SELECT {_JOB} FROM jobs ORDER BY name")]


def find_job(db: sqlite3.Connection, name: str) -> Job | None:
    row = db.execute(f"SELECT {_JOB} FROM jobs WHERE name = ?", (name,)).fetchone()
    return _job(row) if row else None


def read_job(db: sqlite3.Connection, name: str) -> Job:
    found = find_job(db, name)
    if found is None:
        # The hint does not list names, which the caller may not be allowed to read.
        raise NotFound(f"there is no job '{name}'", hint="`headrace jobs` lists them.")
    return found


def _job(row: Any) -> Job:
    name, owner, desired, version, turn, place, submitted, changed, failure = row
    resources = msgspec.json.decode(place, type=JobResources)
    timestamps = iso(submitted), iso(changed)
    return Job(name, owner, desired, version, turn, resources, *timestamps, failure)


def write_job(db: sqlite3.Connection, job: Job, now_us: int) -> Job:
    """Set the desired state of a job, with a new turn and without its earlier deaths."""
    before = db.execute("SELECT turn, submitted_at FROM jobs WHERE name = ?", (job.name,))
    turn, submitted = before.fetchone() or (0, now_us)
    place = msgspec.json.encode(job.place).decode()
    db.execute(
        "INSERT OR REPLACE INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)",
        (job.name, job.owner, job.desired, job.version, turn + 1, place, submitted, now_us),
    )
    db.execute("DELETE FROM deaths WHERE job = ?", (job.name,))
    _write_names(db, job)
    return read_job(db, job.name)


def _write_names(db: sqlite3.Connection, job: Job) -> None:
    db.execute("DELETE FROM names WHERE job = ?", (job.name,))
    if job.desired == CANCELLED:
        return
    names = msgspec.to_builtins(read_version(db, job.name, job.version).names)
    rows = [
        (kind.removesuffix("s"), name.lower(), job.name, name)
        for kind, listed in names.items()
        for name in listed
    ]
    db.executemany("INSERT INTO names VALUES (?, ?, ?, ?)", rows)


def write_failure(db: sqlite3.Connection, job: Job, why: str) -> None:
    """Mark a job as failed, unless a command has changed it meanwhile."""
    db.execute("UPDATE jobs SET failure = ? WHERE name = ? AND turn = ?", (why, job.name, job.turn))


def add_version(
    db: sqlite3.Connection, job: str, number: int, digest: str, names: Names, who: str, now_us: int
) -> None:
    text = msgspec.json.encode(names).decode()
    db.execute(
        "INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?)", (job, number, digest, text, who, now_us)
    )


def versions(db: sqlite3.Connection, job: str) -> list[JobVersion]:
    """All versions of a job, the newest first."""
    rows = db.execute(
        "SELECT number, digest, names, submitted_by, submitted_at FROM versions "
        "WHERE job = ? ORDER BY number DESC",
        (job,),
    )
    return [
        JobVersion(number, digest, msgspec.json.decode(names, type=Names), who, iso(at))
        for number, digest, names, who, at in rows
    ]


def read_version(db: sqlite3.Connection, job: str, number: int) -> JobVersion:
    known = {version.number: version for version in versions(db, job)}
    if number not in known:
        raise NotFound(
            f"job '{job}' has no version {number}",
            hint=f"available versions: {', '.join(map(str, sorted(known))) or 'none'}.",
        )
    return known[number]


def names(db: sqlite3.Connection) -> list[CatalogName]:
    """The catalog: every name of a job that is not cancelled."""
    rows = db.execute("SELECT name, kind, job FROM names ORDER BY key, kind, job")
    return [CatalogName(*row) for row in rows]


def job_of(db: sqlite3.Connection, kind: str, name: str) -> str:
    """The one job that has this name."""
    rows = db.execute("SELECT job FROM names WHERE kind = ? AND key = ?", (kind, name.lower()))
    found = sorted(row[0] for row in rows)
    if not found:
        raise NotFound(f"no job has a {kind} '{name}'", hint="GET /v1/catalog/names lists all.")
    if len(found) > 1:
        names_of_jobs = " and ".join(f"'{job}'" for job in found)
        raise Conflict(
            f"more than one job has a {kind} '{name}': {names_of_jobs}",
            hint=f"use the path of one of them: /v1/jobs/{found[0]}/api/…",
        )
    return str(found[0])
