"""One supervisor for each job. tests/server/test_job_supervisor.py runs it."""

from __future__ import annotations

import threading

from headrace.server.job_supervisor import (
    NOT_OBSERVED,
    JobSnapshot,
    JobSupervisor,
    SupervisorContext,
)
from headrace.server.records import jobs


class Supervisor:
    """Supervises all jobs of a server."""

    def __init__(self, context: SupervisorContext) -> None:
        self._context = context
        self._supervisors: dict[str, JobSupervisor] = {}
        self._lock = threading.Lock()

    def start(self) -> None:
        """Supervise every job; running processes are found by their locks."""
        with self._context.database.read() as db:
            names = [job.name for job in jobs(db)]
        for name in names:
            self.supervise(name)

    def supervise(self, name: str) -> None:
        """Reconcile a job at once, and supervise it from now on."""
        with self._lock:
            if name not in self._supervisors:
                self._supervisors[name] = JobSupervisor(name, self._context)
                self._supervisors[name].start()
            self._supervisors[name].wake()

    def snapshot(self, name: str) -> JobSnapshot:
        with self._lock:
            supervisor = self._supervisors.get(name)
        return supervisor.snapshot if supervisor else NOT_OBSERVED

    def heartbeat_age_s(self, name: str) -> float | None:
        """Time since the last heartbeat of a job; None while it has no process."""
        with self._lock:
            supervisor = self._supervisors.get(name)
        return supervisor.heartbeat_age_s if supervisor else None

    def stop(self) -> None:
        """Stop supervising; the jobs keep running."""
        with self._lock:
            supervisors = list(self._supervisors.values())
        for supervisor in supervisors:
            supervisor.stop()
        for supervisor in supervisors:
            supervisor.join()
