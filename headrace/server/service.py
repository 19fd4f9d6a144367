"""The service behind the routes of a server: the domain's commands, and the state of jobs, as far
as the caller may read it.

tests/server/test_routes.py calls it over HTTP.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace

import msgspec

from headrace.access.caller import Caller
from headrace.api.read_access import may_read, may_read_all
from headrace.core.time import iso
from headrace.run.launch_spec import LaunchSpec, read_key
from headrace.run.lock import running_url
from headrace.server import process
from headrace.server.deaths import read_deaths
from headrace.server.domain import Domain
from headrace.server.job_supervisor import JobSnapshot
from headrace.server.metrics import JobMetrics, exposition
from headrace.server.proxy import JobProxy
from headrace.server.records import RUNNING, Job, job_of, jobs, names, read_job, versions
from headrace.server.resources import ServerCapacity, memory_bytes
from headrace.server.shapes import (
    CatalogNames,
    DomainStatus,
    JobList,
    JobStatus,
    LogLines,
    ServerInstance,
    VersionList,
)
from headrace.server.supervisor import Supervisor


@dataclass(frozen=True, slots=True)
class JobUpstream:
    """The target of proxied requests: the URL and key of a job; its files and last snapshot, to
    answer requests if it is not running.
    """

    url: str | None
    key: bytes
    spec: LaunchSpec
    snapshot: JobSnapshot


def caller_in_job(caller: Caller, job: str) -> Caller:
    """The caller, with permissions in this job."""
    return replace(caller, job=job)


@dataclass(frozen=True, slots=True)
class ServerService:
    """A server of jobs, as its routes use it."""

    domain: Domain
    supervisor: Supervisor
    proxy: JobProxy

    def jobs(self, caller: Caller) -> JobList:
        """The jobs that the caller may read."""
        with self.domain.database.read() as db:
            readable = [job for job in jobs(db) if may_read_all(caller_in_job(caller, job.name))]
            return JobList([self._status(db, job) for job in readable])

    def job(self, name: str) -> JobStatus:
        with self.domain.database.read() as db:
            return self._status(db, read_job(db, name))

    def _read(self, name: str) -> Job:
        with self.domain.database.read() as db:
            return read_job(db, name)

    def _status(self, db: sqlite3.Connection, job: Job) -> JobStatus:
        return JobStatus.of(job, self.supervisor.snapshot(job.name), read_deaths(db, job.name))

    def versions(self, name: str) -> VersionList:
        with self.domain.database.read() as db:
            return VersionList(read_job(db, name).version, versions(db, name))

    def logs(self, name: str, lines: int) -> LogLines:
        return LogLines(process.tail(self.domain.home.log(self._read(name).name), lines))

    def catalog(self, caller: Caller) -> CatalogNames:
        """The names that the caller may read."""
        with self.domain.database.read() as db:
            found = names(db)
        return CatalogNames(
            [n for n in found if may_read(caller_in_job(caller, n.job), n.kind, n.name)]
        )

    def job_of(self, kind: str, name: str) -> str:
        with self.domain.database.read() as db:
            return job_of(db, kind, name)

    def upstream(self, name: str) -> JobUpstream:
        """The upstream of a job; NotFound if it does not exist."""
        job, home = self._read(name), self.domain.home
        state = home.state(name)
        spec = LaunchSpec(str(home.version(name, job.version)), str(state.state))
        url = running_url(state)
        key = read_key(state) if url is not None else b""
        return JobUpstream(url, key, spec, self.supervisor.snapshot(name))

    def metrics(self) -> bytes:
        with self.domain.database.read() as db:
            names = [job.name for job in jobs(db)]
        return exposition([self._job_metrics(name) for name in names])

    def _job_metrics(self, name: str) -> JobMetrics:
        found = self.supervisor.snapshot(name)
        age_s = self.supervisor.heartbeat_age_s(name)
        return JobMetrics(name, found.state, age_s, found.problems)

    def status(self) -> DomainStatus:
        with self.domain.database.read() as db:
            places = [job.place for job in jobs(db) if job.desired == RUNNING]
            rows = db.execute("SELECT name, url, pid, room, started_at FROM instances").fetchall()
        used = sum(p.cores_on_server for p in places), sum(memory_bytes(p.memory) for p in places)
        return DomainStatus([
            ServerInstance(
                name, url, pid, iso(at), msgspec.json.decode(room, type=ServerCapacity), *used
            )
            for name, url, pid, room, at in rows
        ])  # fmt: skip
