"""Brings one job to what it is to be, and keeps it there.

The kernel says whether its process is there (the lock), the process says which turn it is of, and
HTTP says whether it lives. A process of another turn, or that is not wanted, is told to stop and
after a time killed; one that is silent is killed; one that is gone is started again by the rules of
deaths.py. A watcher that begins finds what runs already and leaves it alone.
tests/server/test_watcher.py runs it on real processes.
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

from headrace.core.errors import sentence_of
from headrace.core.time import SECOND, now_us
from headrace.run.lock import Holder, holder, running_url
from headrace.run.order import Order
from headrace.run.server_key import made_key
from headrace.server.database import Database
from headrace.server.deaths import Death, given_up, in_a_row, note_death, pause_us, read_deaths
from headrace.server.home import Home
from headrace.server.line import Line
from headrace.server.meters import DEATHS, STARTS
from headrace.server.place import Room
from headrace.server.process import CommandLine, ended_words, last_words, send_signal, start
from headrace.server.records import Job, read_job, write_failure
from headrace.server.settings import SuperviseSettings

LOOK_S = 0.5
SILENT: Final = "silent"
JobState = Literal[
    "starting", "running", "silent", "restarting", "stopping", "paused", "cancelled", "failed"
]
STATES: tuple[JobState, ...] = get_args(JobState)
_log = structlog.get_logger(__name__)


class Seen(msgspec.Struct, frozen=True):
    """How a job was at the last look."""

    state: JobState
    reason: str = ""
    pid: int | None = None
    url: str | None = None
    back: bool = True  # whether it is to come back, where it is stopping


UNSEEN = Seen("starting", "the server has not looked yet")


@dataclass(slots=True)
class Run:
    """One process of the job, from when it was started or found; times are of the own clock."""

    turn: int
    began_s: float
    heard_s: float
    ready_s: float | None = None
    asked_s: float | None = None  # when it was told to stop
    freed_s: float | None = None  # when its lock was seen free, and it was still there
    held: bool = False  # it has had the lock
    blame: str = ""  # why it was killed, if that counts as a death


@dataclass(frozen=True, slots=True)
class Tools:
    """What all watchers of a server share."""

    home: Home
    database: Database
    settings: SuperviseSettings
    room: Room
    command: CommandLine
    line: Line
    clock: Callable[[], float] = time.monotonic


class Watcher:
    """Watches one job from a thread of its own, so that no job waits for another."""

    def __init__(self, name: str, tools: Tools) -> None:
        self.name, self._tools = name, tools
        self.seen = UNSEEN
        DEATHS.labels(name)  # counted from zero, so that the first death is an increase
        self._layout = tools.home.state(name)
        self._run: Run | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._code: int | None = None
        self._pause: tuple[int, float] | None = None  # after the death at, until the own clock says
        self._trouble = ""
        self._wake, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._go, name=f"watch-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Look at once: something was decided about the job."""
        self._wake.set()

    def stop(self) -> None:
        """Watch no longer; the job goes on."""
        self._stop.set()
        self._wake.set()

    def join(self) -> None:
        self._thread.join()

    @property
    def unheard_s(self) -> float | None:
        """How long ago its process answered, or was found; None while there is none."""
        run = self._run
        return self._tools.clock() - run.heard_s if run is not None and run.held else None

    def _go(self) -> None:
        while not self._stop.is_set():
            self._wake.clear()
            try:
                self.look()
                self._trouble = ""
            except Exception as error:
                self._troubled(f"a look at it failed: {sentence_of(error)}")
            self._wake.wait(LOOK_S)

    def _troubled(self, trouble: str) -> None:
        """Say why nothing is done for the job; in the log once, as there are two looks a second."""
        if trouble != self._trouble:
            _log.exception("a look at a job failed", job=self.name)
        self._trouble, self.seen = trouble, msgspec.structs.replace(self.seen, reason=trouble)

    def look(self) -> None:
        """See how the job is, and do the next thing for it."""
        with self._tools.database.read() as db:
            job = read_job(db, self.name)
        self._reap()
        found = holder(self._layout)
        if found is None:
            self._absent(job)
        elif job.wanted and found.turn == job.turn:
            self._tend(found)
        else:
            self._end(job, found)

    def _reap(self) -> None:
        if self._child is not None and self._child.poll() is not None:
            self._code, self._child = self._child.returncode, None

    # It is there

    def _known(self, found: Holder) -> Run:
        """What is known of the process that holds the lock."""
        if self._run is None or self._run.turn != found.turn:
            now = self._tools.clock()
            self._run = Run(found.turn, now, now)
        # A child that ended because another process had the lock is not the one that is watched.
        self._run.held, self._code = True, None
        return self._run

    def _tend(self, found: Holder) -> None:
        """Listen to its heart."""
        now, run, url = self._tools.clock(), self._known(found), running_url(self._layout)
        if url is not None and self._tools.line.alive(url):
            self._heard(run, found.pid, url)
        else:
            self._silent(run, found, url, now - run.heard_s)

    def _heard(self, run: Run, pid: int, url: str) -> None:
        run.heard_s, reason = self._tools.clock(), ""
        if run.ready_s is None:
            ready, reason = self._tools.line.ready(url)
            run.ready_s = run.heard_s if ready else None
        self.seen = Seen("running" if run.ready_s is not None else "starting", reason, pid, url)

    def _silent(self, run: Run, found: Holder, url: str | None, silent_s: float) -> None:
        patience_us = self._tools.settings.silent_us if url else self._tools.settings.start_us
        if silent_s * SECOND < patience_us:
            said = f"it has been silent for {silent_s:.0f} s" if url else "it is being opened"
            self.seen = Seen(SILENT if url else "starting", said, found.pid, url)
            return
        run.blame = run.blame or f"it did not answer for {silent_s:.0f} s"
        self.seen = Seen("stopping", run.blame, found.pid)
        send_signal(self._layout, found, signal.SIGKILL)

    def _end(self, job: Job, found: Holder) -> None:
        """Tell it to stop; after a time it is made to."""
        now, run = self._tools.clock(), self._known(found)
        if run.asked_s is None:
            run.asked_s = now
            send_signal(self._layout, found, signal.SIGTERM)
        elif (now - run.asked_s) * SECOND >= self._tools.settings.stop_us:
            send_signal(self._layout, found, signal.SIGKILL)
        reason = "another version or turn follows" if job.wanted else f"it is {job.desired}"
        self.seen = Seen("stopping", reason, found.pid, back=job.wanted)

    # It is not there

    def _absent(self, job: Job) -> None:
        if self._child is not None:
            self._await_child(job, self._child)
            return
        if self._run is not None:
            self._bury(job, self._run)
            return
        if not job.wanted:
            self.seen = Seen("failed" if job.failure else job.desired, job.failure or "")
            return
        if (wait_s := self._wait_s()) > 0:
            why = f"it is started again in {wait_s:.0f} s"
            self.seen = Seen("restarting", f"{self._last_death()}; {why}")
            return
        self._start(job)

    def _await_child(self, job: Job, child: subprocess.Popen[bytes]) -> None:
        """It does not hold its lock yet, or does no longer."""
        assert self._run is not None
        now = self._tools.clock()
        if self._run.held:
            self._run.freed_s = self._run.freed_s or now
            if (now - self._run.freed_s) * SECOND >= self._tools.settings.stop_us:
                child.kill()  # a thread of its own keeps it
            self.seen = Seen("stopping", "its process is ending", child.pid, back=job.wanted)
            return
        late_s = now - self._run.began_s
        if not job.wanted or self._run.turn != job.turn:
            self._run.asked_s = now
            child.kill()
        elif late_s * SECOND >= self._tools.settings.start_us:
            self._run.blame = f"it did not begin within {late_s:.0f} s"
            child.kill()
        self.seen = Seen("starting", "its process is starting", child.pid)

    def _bury(self, job: Job, run: Run) -> None:
        """Its process is gone: as it was told, or a death."""
        if run.asked_s is None or run.blame:
            self._note_death(job, run)
        self._run = self._code = None

    def _note_death(self, job: Job, run: Run) -> None:
        settings, log = self._tools.settings, self._tools.home.log(self.name)
        why = run.blame or last_words(log) or ended_words(self._code)
        healthy_s = self._tools.clock() - run.ready_s if run.ready_s is not None else 0.0
        death = Death(now_us(), healthy_s * SECOND >= settings.healthy_us, why)
        with self._tools.database.write() as db:
            note_death(db, self.name, death)
            deaths = in_a_row(read_deaths(db, self.name), death.at_us, settings.window_us)
            if failure := given_up(deaths, settings, str(log)):
                write_failure(db, job, failure)
        self.seen = Seen("failed" if failure else "restarting", failure or why)
        DEATHS.labels(self.name).inc()
        _log.warning("a job died", job=self.name, why=why, deaths=len(deaths), failed=bool(failure))

    def _wait_s(self) -> float:
        """How long until the next start. The machine's clock may be set at any time, so it is asked
        once after a death, and a pause is never longer than it is to be.
        """
        settings, now = self._tools.settings, now_us()
        with self._tools.database.read() as db:
            deaths = in_a_row(read_deaths(db, self.name), now, settings.window_us)
        if not deaths:
            return 0
        died, pause = deaths[-1].at_us, pause_us(len(deaths), settings)
        if self._pause is None or self._pause[0] != died:
            left_us = min(max(died + pause - now, 0), pause)
            self._pause = died, self._tools.clock() + left_us / SECOND
        return self._pause[1] - self._tools.clock()

    def _last_death(self) -> str:
        with self._tools.database.read() as db:
            return read_deaths(db, self.name)[-1].why

    def _start(self, job: Job) -> None:
        home, now = self._tools.home, self._tools.clock()
        order = Order(
            str(home.version(self.name, job.version)),
            str(self._layout.state),
            job.turn,
            self._tools.room.master(job.place),
            job.place.memory,
            served=True,
        )
        made_key(self._layout)
        said: dict[str, object] = {"version": job.version, "turn": job.turn}
        self._child = start(self._tools.command("run", order), home.log(self.name), said)
        self._run = Run(job.turn, now, now)
        self.seen = Seen("starting", "its process is starting", self._child.pid)
        STARTS.labels(self.name).inc()
        _log.info("a job is started", job=self.name, pid=self._child.pid, **said)
