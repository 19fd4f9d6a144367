"""What the routes of a server ask: the domain's commands, and how everything is, as far as the one
who asks may read it.

tests/server/test_routes.py asks it over HTTP.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace

import msgspec

from headrace.access.caller import Caller
from headrace.api.readable import reads, reads_all
from headrace.core.time import iso
from headrace.run.lock import running_url
from headrace.run.order import Order
from headrace.run.server_key import read_key
from headrace.server import process
from headrace.server.deaths import read_deaths
from headrace.server.domain import Domain
from headrace.server.line import Line
from headrace.server.metrics import Watched, exposition
from headrace.server.place import Room, memory_bytes
from headrace.server.records import (
    RUNNING,
    Job,
    job_of,
    jobs,
    names,
    read_job,
    versions,
)
from headrace.server.shapes import (
    CatalogNames,
    DomainStatus,
    Instance,
    Jobs,
    JobStatus,
    Logs,
    Versions,
)
from headrace.server.supervisor import Supervisor
from headrace.server.watcher import Seen


@dataclass(frozen=True, slots=True)
class Reach:
    """Where a job answers; and where it does not, what answers in its place."""

    url: str | None
    key: bytes
    order: Order
    seen: Seen


def within(caller: Caller, job: str) -> Caller:
    """The caller, as one who asks this job."""
    return replace(caller, job=job)


@dataclass(frozen=True, slots=True)
class Office:
    """A server as it is asked."""

    domain: Domain
    supervisor: Supervisor
    line: Line

    def jobs(self, caller: Caller) -> Jobs:
        """Those that the caller may read."""
        with self.domain.database.read() as db:
            readable = [job for job in jobs(db) if reads_all(within(caller, job.name))]
            return Jobs([self._status(db, job) for job in readable])

    def job(self, name: str) -> JobStatus:
        with self.domain.database.read() as db:
            return self._status(db, read_job(db, name))

    def _read(self, name: str) -> Job:
        with self.domain.database.read() as db:
            return read_job(db, name)

    def _status(self, db: sqlite3.Connection, job: Job) -> JobStatus:
        return JobStatus.of(job, self.supervisor.seen(job.name), read_deaths(db, job.name))

    def versions(self, name: str) -> Versions:
        with self.domain.database.read() as db:
            return Versions(read_job(db, name).version, versions(db, name))

    def logs(self, name: str, lines: int) -> Logs:
        return Logs(process.tail(self.domain.home.log(self._read(name).name), lines))

    def catalog(self, caller: Caller) -> CatalogNames:
        """The names that the caller may read."""
        with self.domain.database.read() as db:
            found = names(db)
        return CatalogNames([n for n in found if reads(within(caller, n.job), n.kind, n.name)])

    def job_of(self, kind: str, name: str) -> str:
        with self.domain.database.read() as db:
            return job_of(db, kind, name)

    def reach(self, name: str) -> Reach:
        """How to reach a job; NotFound if there is none."""
        job, home = self._read(name), self.domain.home
        state = home.state(name)
        order = Order(str(home.version(name, job.version)), str(state.state))
        url = running_url(state)
        key = read_key(state) if url is not None else b""
        return Reach(url, key, order, self.supervisor.seen(name))

    def metrics(self) -> bytes:
        with self.domain.database.read() as db:
            names = [job.name for job in jobs(db)]
        watch = self.supervisor
        return exposition([Watched(n, watch.seen(n).state, watch.unheard_s(n)) for n in names])

    def status(self) -> DomainStatus:
        with self.domain.database.read() as db:
            places = [job.place for job in jobs(db) if job.desired == RUNNING]
            rows = db.execute("SELECT name, url, pid, room, started_at FROM instances").fetchall()
        used = sum(p.cores_here for p in places), sum(memory_bytes(p.memory) for p in places)
        return DomainStatus([
            Instance(name, url, pid, iso(at), msgspec.json.decode(room, type=Room), *used)
            for name, url, pid, room, at in rows
        ])  # fmt: skip
