"""Runs the periodic steps archive, build, reload and tidy, one at a time, in one thread.

A step that fails is reported and tried again at its next time; it never stops the others.
`rebuild` requests a full build of all events that are acknowledged by then: it starts when speed
has committed them, and the other steps continue until then. `stop` cancels the running step.
tests/run/test_schedule.py drives it with a held clock.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial

from headrace.batch.build import BuildResult
from headrace.compile.plan import TablePlan
from headrace.core.errors import Fenced, HeadraceError, Unavailable
from headrace.core.position import Position
from headrace.core.problems import Problem, ProblemKey, Problems, reason_of
from headrace.core.report import Report
from headrace.core.rule import shown_name
from headrace.core.time import SECOND, Clock, now_us
from headrace.core.watchdog import Watchdog
from headrace.core.worker import Worker, problems_of
from headrace.define.settings import Settings
from headrace.log.protocol import LogWriter
from headrace.run.pipeline import Pipeline
from headrace.run.tables import Tables
from headrace.serving.retention import AlertRetention
from headrace.spark.jobs import POLL_S, BatchJobs

TICK_S = 0.1
STOP_WAIT_S = 2.0  # before `stop` cancels the running step
TIDY_US = 60 * SECOND
SPEED_FIRST_US = 30 * SECOND  # the longest that a start lets steps wait for speed
_STEPS = {"archive": "the archive step", "batch": "the batch build", "tidy": "the cleanup"}


@dataclass(slots=True, eq=False)
class RebuildRequest:
    """A requested full build of a view."""

    stream: str
    view: str
    end: Position  # of the log at the time of the request
    requested_at_us: int
    started_at_us: int | None = None
    done: Future[BuildResult] = field(default_factory=Future)


class _NextTimes:
    """When each periodic step is due."""

    def __init__(self, now_us: int, settings: Settings) -> None:
        self.archive_at = now_us
        self.build_at = now_us + settings.batch.interval_us
        self.tidy_at = now_us + TIDY_US
        self.reload_at = now_us + settings.tables.interval_us


class Schedule:
    """Runs the periodic work of all streams."""

    def __init__(
        self,
        pipelines: dict[str, Pipeline],
        topics: dict[str, LogWriter],
        settings: Settings,
        report: Report,
        clock: Clock = now_us,
        tables: Tables | None = None,
        retention: AlertRetention | None = None,
        jobs: BatchJobs | None = None,
        watchdog: Watchdog | None = None,
    ) -> None:
        self.pipelines, self.topics, self.settings = pipelines, topics, settings
        self.report, self.clock, self.tables = report, clock, tables
        self.retention, self._jobs, self._joined = retention, jobs, False
        self._watchdog = watchdog or Watchdog()
        self.generations = 0
        self.events = 0
        self.differences: Counter[str] = Counter()  # by view
        self._problems = Problems("schedule", report)
        self._stop = threading.Event()
        self._ended = False
        self._requests: list[RebuildRequest] = []  # not done yet
        self._lock = threading.Lock()
        self._steps = threading.Lock()  # held while steps run
        self._awaited: dict[str, Position] = {}  # what speed commits first, by flow
        self._awaited_until = 0
        self._times = _NextTimes(self.clock(), settings)
        self._worker = Worker("schedule", self._turn, self._stop, report)

    @property
    def problems(self) -> list[Problem]:
        return [*self._problems, *problems_of([self._worker])]

    def start(self) -> None:
        """Start the steps; the first wait until speed has committed what is in the logs now."""
        now = self.clock()
        self._times, self._awaited_until = _NextTimes(now, self.settings), now + SPEED_FIRST_US
        self._awaited = {name: pipeline.end() for name, pipeline in self.pipelines.items()}
        self._worker.start()

    def stop(self) -> None:
        self._stop.set()
        self._worker.join(STOP_WAIT_S)
        while self._jobs and self._worker.alive:
            self._jobs.cancel()
            self._worker.join(POLL_S)
        self._worker.join()
        self._end()

    def paused(self) -> AbstractContextManager[object]:
        """A context in which no step runs; entering it waits for the running step."""
        return self._steps

    def replace(self, pipelines: dict[str, Pipeline], tables: Tables) -> None:
        """Use other pipelines and tables from the next turn on."""
        for name in self.pipelines.keys() - pipelines.keys():
            self._problems.forget("flow", name)
        for name in self._tables.keys() - tables.tables.keys():
            self._problems.forget("table", name)
        self.pipelines, self.tables = pipelines, tables

    def rebuild(self, stream: str, view: str) -> Future[BuildResult]:
        """Request a full build of a view."""
        request = RebuildRequest(stream, view, self.pipelines[stream].end(), self.clock())
        with self._lock:
            self._requests.append(request)
        if self._ended:
            self._refuse_requests()
        return request.done

    def rebuild_request(self, view: str) -> RebuildRequest | None:
        """The running or waiting rebuild of a view, if there is one."""
        with self._lock:
            return next((request for request in self._requests if request.view == view), None)

    def _end(self) -> None:
        self._ended = True
        self._refuse_requests()

    def _refuse_requests(self) -> None:
        with self._lock:
            requests, self._requests = self._requests, []
        for request in requests:
            reason = f"view '{request.view}' was not built: the project is shutting down"
            request.done.set_exception(Unavailable(reason))

    def _turn(self) -> float:
        if self._jobs and not self._joined:
            self._jobs.join()
            self._joined = True
        # Does not block: a pause may last for hours, and `stop` must not wait for its end.
        if not self._speed_is_behind() and self._steps.acquire(blocking=False):
            try:
                self._run_due()
            finally:
                self._steps.release()
        return TICK_S

    def _speed_is_behind(self) -> bool:
        """Whether speed is still to commit the first events. A step would compete with it for
        processors, and the promotion of a build would discard its epoch.
        """
        for name, end in list(self._awaited.items()):
            pipeline = self.pipelines.get(name)
            if pipeline is None or pipeline.has_committed(end):
                del self._awaited[name]
        return bool(self._awaited) and self.clock() < self._awaited_until

    def _run_due(self) -> None:
        """Run the steps that are due."""
        times, now, settings = self._times, self.clock(), self.settings
        self._run_rebuilds()
        if now >= times.reload_at:
            self._reload()
            times.reload_at = now + settings.tables.interval_us
        if now >= times.archive_at:
            self._each("archive", lambda name, pipeline: pipeline.archive())
            times.archive_at = self.clock() + settings.archive.interval_us
        if now >= times.build_at:
            self._each("batch", self._build)
            times.build_at = now + settings.batch.interval_us
        if now >= times.tidy_at:
            self._tidy()
            times.tidy_at = now + TIDY_US

    def _tidy(self) -> None:
        self._each("tidy", lambda name, pipeline: pipeline.tidy(self.topics))
        if self.retention:
            key = ProblemKey("part", "ledger", "tidy")
            self._attempt(key, "removing old alerts failed", self.retention.remove_old)

    def _each(self, what: str, action: Callable[[str, Pipeline], object]) -> None:
        for name, pipeline in self.pipelines.items():
            failed = f"{_STEPS[what]} of stream '{name}' failed"
            self._attempt(ProblemKey("flow", name, what), failed, partial(action, name, pipeline))
            if self._stop.is_set():
                return

    def _reload(self) -> None:
        """Reload each table as a step of its own, so that a failure does not affect the others."""
        limit_us = self.settings.watchdog.archive_us
        for name in self._tables:
            key, failed = ProblemKey("table", name, "reload"), f"table '{name}' was not reloaded"
            with self._watchdog.step(key, f"the reload of table '{name}'", limit_us):
                self._attempt(key, failed, partial(self._reload_one, name))

    def _reload_one(self, name: str) -> None:
        if self.tables and (version := self.tables.reload(name)):
            self.report("table", {"table": name, "version": version})

    @property
    def _tables(self) -> dict[str, TablePlan]:
        return self.tables.tables if self.tables else {}

    def _attempt(self, key: ProblemKey, failed: str, action: Callable[[], object]) -> None:
        """Run one step. A failure is a problem until the step succeeds; a step that `stop` has
        cancelled has not failed.
        """
        try:
            action()
            self._problems.over(key)
        except Exception as error:
            if self._stop.is_set():
                return
            self._problems.note(key, f"{failed}: {reason_of(error)}", error)
            if isinstance(error, Fenced):
                # Another process is the writer of the store, so this one cannot commit any more.
                self._stop.set()
                self._end()

    def _build(self, name: str, pipeline: Pipeline) -> None:
        # A build reads archived events only.
        pipeline.archive()
        if (promoted := pipeline.build()) is not None:
            self.note_promoted(promoted)

    def note_promoted(self, promoted: BuildResult) -> None:
        """Count and report a generation."""
        self.generations += 1
        self.events += promoted.events
        differing = {
            shown_name(audit.view): audit.differences
            for audit in promoted.audits
            if audit.differences
        }
        self.differences.update(differing)
        self.report(
            "generation",
            {
                "stream": promoted.stream,
                "generation": promoted.generation,
                "boundary": list(promoted.boundary.offsets),
                "events": promoted.events,
                "differences": sum(differing.values()),
                "differing": differing,
            },
        )

    def _run_rebuilds(self) -> None:
        with self._lock:
            requests = list(self._requests)
        for request in requests:
            try:
                if not self.pipelines[request.stream].has_committed(request.end):
                    continue
                request.started_at_us = self.clock()
                promoted = self._rebuilt(request)
            except Exception as error:
                if self._stop.is_set():
                    return  # it was cancelled, and `stop` refuses all requests
                self._forget(request)
                request.done.set_exception(error)
            else:
                self._forget(request)
                request.done.set_result(promoted)

    def _rebuilt(self, request: RebuildRequest) -> BuildResult:
        promoted = self.pipelines[request.stream].rebuild(request.view)
        if promoted is None:
            raise HeadraceError(f"view '{request.view}' was not built")
        self.note_promoted(promoted)
        return promoted

    def _forget(self, request: RebuildRequest) -> None:
        """Called before the future is done, so that its callbacks do not find the request."""
        with self._lock:
            self._requests.remove(request)
