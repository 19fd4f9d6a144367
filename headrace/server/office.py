"""What the routes of a server ask: the domain's commands, and how everything is.

tests/server/test_routes.py asks it over HTTP.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from headrace.core.time import iso
from headrace.run.lock import running_url
from headrace.run.order import Order
from headrace.server import process
from headrace.server.domain import Domain
from headrace.server.line import Line
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
    Catalog,
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
    order: Order
    seen: Seen


@dataclass(frozen=True, slots=True)
class Office:
    """A server as it is asked."""

    domain: Domain
    supervisor: Supervisor
    line: Line

    def jobs(self) -> Jobs:
        with self.domain.database.read() as db:
            found = jobs(db)
        return Jobs([self._status(job) for job in found])

    def job(self, name: str) -> JobStatus:
        return self._status(self._read(name))

    def _read(self, name: str) -> Job:
        with self.domain.database.read() as db:
            return read_job(db, name)

    def _status(self, job: Job) -> JobStatus:
        return JobStatus.of(job, self.supervisor.seen(job.name))

    def versions(self, name: str) -> Versions:
        with self.domain.database.read() as db:
            return Versions(read_job(db, name).version, versions(db, name))

    def logs(self, name: str, lines: int) -> Logs:
        return Logs(process.tail(self.domain.home.log(self._read(name).name), lines))

    def catalog(self) -> Catalog:
        with self.domain.database.read() as db:
            return Catalog(names(db))

    def job_of(self, kind: str, name: str) -> str:
        with self.domain.database.read() as db:
            return job_of(db, kind, name)

    def reach(self, name: str) -> Reach:
        """How to reach a job; NotFound if there is none."""
        job, home = self._read(name), self.domain.home
        state = home.state(name)
        order = Order(str(home.version(name, job.version)), str(state.state))
        return Reach(running_url(state), order, self.supervisor.seen(name))

    def status(self) -> DomainStatus:
        with self.domain.database.read() as db:
            places = [job.place for job in jobs(db) if job.desired == RUNNING]
            rows = db.execute("SELECT name, url, pid, room, started_at FROM instances").fetchall()
        used = sum(p.cores_here for p in places), sum(memory_bytes(p.memory) for p in places)
        return DomainStatus([
            Instance(name, url, pid, iso(at), msgspec.json.decode(room, type=Room), *used)
            for name, url, pid, room, at in rows
        ])  # fmt: skip
