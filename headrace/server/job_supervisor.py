"""Reconciles one job: brings its process to the desired state, and keeps it there.

A file lock shows whether the process exists, its content which turn it has, and HTTP whether it
responds. A process of another turn, or one that should not run, gets SIGTERM and after a timeout
SIGKILL; one without heartbeat is killed; one that has exited is restarted by the rules of
deaths.py. A new supervisor finds a running process and leaves it alone. Whether a job that responds
is well is taken from its own status.
tests/server/test_job_supervisor.py runs it on real processes.
"""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, get_args

import msgspec
import structlog

from headrace.core.errors import Unavailable, sentence_of
from headrace.core.time import SECOND, now_us
from headrace.run.launch_spec import LaunchSpec, ensure_key, read_key
from headrace.run.lock import LockHolder, holder, running_url
from headrace.server.database import DomainDatabase
from headrace.server.deaths import Death, failure_after, in_a_row, note_death, pause_us, read_deaths
from headrace.server.home import Home
from headrace.server.meters import DEATHS, STARTS
from headrace.server.process import CommandLine, exit_reason, last_error, send_signal, start
from headrace.server.proxy import JobHealth, JobProxy
from headrace.server.records import Job, read_job, write_failure
from headrace.server.resources import ServerCapacity
from headrace.server.settings import SuperviseSettings

POLL_S = 0.5
HEALTH_S = 2.0  # a job reads its store for its status, so it is not requested at each poll
SILENT: Final = "silent"
JobState = Literal[
    "starting", "running", "degraded", "silent", "restarting", "stopping", "paused", "cancelled",
    "failed",
]  # fmt: skip
STATES: tuple[JobState, ...] = get_args(JobState)
_log = structlog.get_logger(__name__)


class JobSnapshot(msgspec.Struct, frozen=True):
    """The state of a job at the last check."""

    state: JobState
    reason: str = ""
    pid: int | None = None
    url: str | None = None
    restarts: bool = True  # whether a stopping job will be started again
    problems: int = 0  # in its own status


NOT_OBSERVED = JobSnapshot("starting", "the server has not checked the job yet")


@dataclass(slots=True)
class JobProcess:
    """One process of the job, since it was started or found; times are of the monotonic clock."""

    turn: int
    started_s: float
    heartbeat_s: float
    ready_s: float | None = None
    health: JobHealth = JobHealth("starting")
    health_s: float = 0.0  # when the health was requested
    stop_requested_s: float | None = None  # time of SIGTERM
    lock_released_s: float | None = None  # when the lock was free but the process still existed
    held: bool = False  # it has held the lock
    kill_reason: str = ""  # why it was killed, if that counts as a death


@dataclass(frozen=True, slots=True)
class SupervisorContext:
    """The context of all supervisors of a server."""

    home: Home
    database: DomainDatabase
    settings: SuperviseSettings
    capacity: ServerCapacity
    command: CommandLine
    proxy: JobProxy
    clock: Callable[[], float] = time.monotonic


class JobSupervisor:
    """Supervises one job in a thread of its own, so that no job waits for another."""

    def __init__(self, name: str, context: SupervisorContext) -> None:
        self.name, self._context = name, context
        self.snapshot = NOT_OBSERVED
        DEATHS.labels(name)  # counted from zero, so that the first death is an increase
        self._layout = context.home.state(name)
        self._process: JobProcess | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._code: int | None = None
        self._pause: tuple[int, float] | None = None  # time of the death, and end of its back-off
        self._last_failure = ""
        self._wake, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._loop, name=f"supervise-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Reconcile at once: the desired state has changed."""
        self._wake.set()

    def stop(self) -> None:
        """Stop supervising; the job keeps running."""
        self._stop.set()
        self._wake.set()

    def join(self) -> None:
        self._thread.join()

    @property
    def heartbeat_age_s(self) -> float | None:
        """Time since its process responded, or was found; None while there is none."""
        process = self._process
        if process is None or not process.held:
            return None
        return self._context.clock() - process.heartbeat_s

    def _loop(self) -> None:
        while not self._stop.is_set():
            self._wake.clear()
            try:
                self.reconcile()
                self._last_failure = ""
            except Exception as error:
                self._report_failure(f"the server cannot check the job: {sentence_of(error)}")
            self._wake.wait(POLL_S)

    def _report_failure(self, failure: str) -> None:
        """Report why the job cannot be reconciled; logged once, not twice a second."""
        if failure != self._last_failure:
            _log.exception("checking a job failed", job=self.name)
        self._last_failure = failure
        known = self.snapshot.state
        state: JobState = "degraded" if known == "running" else known
        self.snapshot = msgspec.structs.replace(self.snapshot, state=state, reason=failure)

    def reconcile(self) -> None:
        """Compare the process with the desired state, and take the next step."""
        with self._context.database.read() as db:
            job = read_job(db, self.name)
        self._reap()
        found = holder(self._layout)
        if found is None:
            self._reconcile_absent(job)
        elif job.should_run and found.turn == job.turn:
            self._check_heartbeat(found)
        else:
            self._stop_process(job, found)

    def _reap(self) -> None:
        if self._child is not None and self._child.poll() is not None:
            self._code, self._child = self._child.returncode, None

    # The process exists

    def _process_of(self, found: LockHolder) -> JobProcess:
        """The record of the process that holds the lock."""
        if self._process is None or self._process.turn != found.turn:
            now = self._context.clock()
            self._process = JobProcess(found.turn, now, now)
        # A child that exited because another process had the lock is not the supervised one.
        self._process.held, self._code = True, None
        return self._process

    def _check_heartbeat(self, found: LockHolder) -> None:
        """Request its liveness, and kill it if there was no heartbeat for too long."""
        now, process = self._context.clock(), self._process_of(found)
        url = running_url(self._layout)
        if url is not None and self._context.proxy.alive(url):
            self._on_heartbeat(process, found.pid, url)
        else:
            self._on_missed_heartbeat(process, found, url, now - process.heartbeat_s)

    def _on_heartbeat(self, process: JobProcess, pid: int, url: str) -> None:
        now = process.heartbeat_s = self._context.clock()
        if process.ready_s is None or now - process.health_s >= HEALTH_S:
            process.health, process.health_s = self._health(process, url), now
        health = process.health
        if process.ready_s is None and health.state in ("running", "degraded"):
            process.ready_s = now
        problems = len(health.problems)
        self.snapshot = JobSnapshot(health.state, health.explanation, pid, url, problems=problems)

    def _health(self, process: JobProcess, url: str) -> JobHealth:
        try:
            return self._context.proxy.health(self.name, url, read_key(self._layout))
        except Unavailable as error:
            reason = f"its status is not available: {error.message}"
            return JobHealth("starting" if process.ready_s is None else "degraded", reason)

    def _on_missed_heartbeat(
        self, process: JobProcess, found: LockHolder, url: str | None, idle_s: float
    ) -> None:
        patience_us = self._context.settings.silent_us if url else self._context.settings.start_us
        if idle_s * SECOND < patience_us:
            reason = f"no heartbeat for {idle_s:.0f} s" if url else "it is starting"
            self.snapshot = JobSnapshot(SILENT if url else "starting", reason, found.pid, url)
            return
        process.kill_reason = process.kill_reason or f"it had no heartbeat for {idle_s:.0f} s"
        self.snapshot = JobSnapshot("stopping", process.kill_reason, found.pid)
        send_signal(self._layout, found, signal.SIGKILL)

    def _stop_process(self, job: Job, found: LockHolder) -> None:
        """Send SIGTERM, and after a timeout SIGKILL."""
        now, process = self._context.clock(), self._process_of(found)
        if process.stop_requested_s is None:
            process.stop_requested_s = now
            send_signal(self._layout, found, signal.SIGTERM)
        elif (now - process.stop_requested_s) * SECOND >= self._context.settings.stop_us:
            send_signal(self._layout, found, signal.SIGKILL)
        reason = "it is being restarted" if job.should_run else f"it is {job.desired}"
        self.snapshot = JobSnapshot("stopping", reason, found.pid, restarts=job.should_run)

    # The process does not exist

    def _reconcile_absent(self, job: Job) -> None:
        if self._child is not None:
            self._await_child(job, self._child)
            return
        if self._process is not None:
            self._on_exit(job, self._process)
            return
        if not job.should_run:
            self.snapshot = JobSnapshot("failed" if job.failure else job.desired, job.failure or "")
            return
        if (wait_s := self._restart_delay_s()) > 0:
            why = f"restart in {wait_s:.0f} s"
            self.snapshot = JobSnapshot("restarting", f"{self._last_death()}; {why}")
            return
        self._start(job)

    def _await_child(self, job: Job, child: subprocess.Popen[bytes]) -> None:
        """The child process does not hold its lock yet, or any more."""
        assert self._process is not None
        now = self._context.clock()
        if self._process.held:
            self._process.lock_released_s = self._process.lock_released_s or now
            if (now - self._process.lock_released_s) * SECOND >= self._context.settings.stop_us:
                child.kill()  # one of its threads does not end
            self.snapshot = JobSnapshot(
                "stopping", "its process is exiting", child.pid, restarts=job.should_run
            )
            return
        late_s = now - self._process.started_s
        if not job.should_run or self._process.turn != job.turn:
            self._process.stop_requested_s = now
            child.kill()
        elif late_s * SECOND >= self._context.settings.start_us:
            self._process.kill_reason = f"it did not start within {late_s:.0f} s"
            child.kill()
        self.snapshot = JobSnapshot("starting", "its process is starting", child.pid)

    def _on_exit(self, job: Job, process: JobProcess) -> None:
        """The process has exited: as requested, or it died."""
        if process.stop_requested_s is None or process.kill_reason:
            self._note_death(job, process)
        self._process = self._code = None

    def _note_death(self, job: Job, process: JobProcess) -> None:
        settings, log = self._context.settings, self._context.home.log(self.name)
        why = process.kill_reason or last_error(log) or exit_reason(self._code)
        healthy_s = self._context.clock() - process.ready_s if process.ready_s is not None else 0.0
        death = Death(now_us(), healthy_s * SECOND >= settings.healthy_us, why)
        with self._context.database.write() as db:
            note_death(db, self.name, death)
            deaths = in_a_row(read_deaths(db, self.name), death.at_us, settings.window_us)
            if failure := failure_after(deaths, settings, str(log)):
                write_failure(db, job, failure)
        self.snapshot = JobSnapshot("failed" if failure else "restarting", failure or why)
        DEATHS.labels(self.name).inc()
        _log.warning("job died", job=self.name, why=why, deaths=len(deaths), failed=bool(failure))

    def _restart_delay_s(self) -> float:
        """The time until the next start. The wall clock may be changed at any time, so it is read
        once after a death, and a pause is never longer than the back-off.
        """
        settings, now = self._context.settings, now_us()
        with self._context.database.read() as db:
            deaths = in_a_row(read_deaths(db, self.name), now, settings.window_us)
        if not deaths:
            return 0
        died, pause = deaths[-1].at_us, pause_us(len(deaths), settings)
        if self._pause is None or self._pause[0] != died:
            left_us = min(max(died + pause - now, 0), pause)
            self._pause = died, self._context.clock() + left_us / SECOND
        return self._pause[1] - self._context.clock()

    def _last_death(self) -> str:
        with self._context.database.read() as db:
            return read_deaths(db, self.name)[-1].why

    def _start(self, job: Job) -> None:
        home, now = self._context.home, self._context.clock()
        spec = LaunchSpec(
            str(home.version(self.name, job.version)),
            str(self._layout.state),
            job.turn,
            self._context.capacity.master(job.place),
            job.place.memory,
            served=True,
        )
        ensure_key(self._layout)
        fields: dict[str, object] = {"version": job.version, "turn": job.turn}
        self._child = start(self._context.command("run", spec), home.log(self.name), fields)
        self._process = JobProcess(job.turn, now, now)
        self.snapshot = JobSnapshot("starting", "its process is starting", self._child.pid)
        STARTS.labels(self.name).inc()
        _log.info("job started", job=self.name, pid=self._child.pid, **fields)
