"""The JSON of the server's own routes, where it is not a noun of another file.

Each answer is an object, so that a field can be added later.
"""

from __future__ import annotations

import msgspec

from headrace.core.time import iso
from headrace.server.deaths import Death
from headrace.server.place import Place, Room
from headrace.server.records import Desired, Job, Named, Version
from headrace.server.watcher import JobState, Seen


class LastDeath(msgspec.Struct, frozen=True):
    """When and why a job's process ended that nobody had asked to end."""

    at: str
    why: str


class JobStatus(msgspec.Struct, frozen=True):
    """What a job is to be, and how it is. Its deaths are those since the last command."""

    name: str
    state: JobState
    reason: str
    desired: Desired
    version: int
    owner: str
    place: Place
    submitted_at: str
    changed_at: str
    pid: int | None = None
    deaths: int = 0
    last_death: LastDeath | None = None

    @staticmethod
    def of(job: Job, seen: Seen, deaths: list[Death]) -> JobStatus:
        known = job.desired, job.version, job.owner, job.place, job.submitted_at, job.changed_at
        last = LastDeath(iso(deaths[-1].at_us), deaths[-1].why) if deaths else None
        return JobStatus(job.name, seen.state, seen.reason, *known, seen.pid, len(deaths), last)


class Jobs(msgspec.Struct, frozen=True):
    """All jobs of a domain."""

    jobs: list[JobStatus]


class Versions(msgspec.Struct, frozen=True):
    """All versions of a job, the newest first, and which of them is current."""

    current: int
    versions: list[Version]


class Logs(msgspec.Struct, frozen=True):
    """The last lines of a job's log."""

    lines: list[str]


class CatalogNames(msgspec.Struct, frozen=True):
    """Every stream, view and rule, and the job that it is of."""

    names: list[Named]


class Instance(msgspec.Struct, frozen=True):
    """A server of the domain, and how much of it is in use."""

    name: str
    url: str
    pid: int
    started_at: str
    room: Room
    cores_used: int
    memory_used: int


class DomainStatus(msgspec.Struct, frozen=True):
    """The servers of a domain."""

    instances: list[Instance]
