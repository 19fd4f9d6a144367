"""Response types of the server's own routes.

Each response is an object, so that a field can be added later.
"""

from __future__ import annotations

import msgspec

from headrace.core.time import iso
from headrace.server.deaths import Death
from headrace.server.job_supervisor import JobSnapshot, JobState
from headrace.server.records import CatalogName, Desired, Job, JobVersion
from headrace.server.resources import JobResources, ServerCapacity


class LastDeath(msgspec.Struct, frozen=True):
    """The time and reason of the last unexpected exit of a job's process."""

    at: str
    why: str


class JobStatus(msgspec.Struct, frozen=True):
    """The desired and the current state of a job. Deaths are counted since the last command."""

    name: str
    state: JobState
    reason: str
    desired: Desired
    version: int
    owner: str
    place: JobResources
    submitted_at: str
    changed_at: str
    pid: int | None = None
    deaths: int = 0
    last_death: LastDeath | None = None
    problems: int = 0  # in its own status, while its process responds

    @staticmethod
    def of(job: Job, snapshot: JobSnapshot, deaths: list[Death]) -> JobStatus:
        known = job.desired, job.version, job.owner, job.place, job.submitted_at, job.changed_at
        last = LastDeath(iso(deaths[-1].at_us), deaths[-1].why) if deaths else None
        return JobStatus(
            job.name, snapshot.state, snapshot.reason, *known, snapshot.pid, len(deaths), last,
            snapshot.problems,
        )  # fmt: skip


class JobList(msgspec.Struct, frozen=True):
    """All jobs of a domain."""

    jobs: list[JobStatus]


class VersionList(msgspec.Struct, frozen=True):
    """All versions of a job, the newest first, and which of them is current."""

    current: int
    versions: list[JobVersion]


class LogLines(msgspec.Struct, frozen=True):
    """The last lines of a job's log."""

    lines: list[str]


class CatalogNames(msgspec.Struct, frozen=True):
    """Every stream, view and rule, with its job."""

    names: list[CatalogName]


class ServerInstance(msgspec.Struct, frozen=True):
    """A server of the domain, with its capacity and the part in use."""

    name: str
    url: str
    pid: int
    started_at: str
    room: ServerCapacity
    cores_used: int
    memory_used: int


class DomainStatus(msgspec.Struct, frozen=True):
    """The servers of a domain."""

    instances: list[ServerInstance]
