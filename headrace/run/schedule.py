"""What happens again and again: archive, build, reload, tidy. One thread, one step at a time.

A step that fails is reported and tried again at its next turn; it never stops the others.
`rebuild` asks for a full build of all that was acknowledged by then: it waits until speed has taken
that, while the other steps continue; `rebuilding` says how far it is. `stop` ends the step that
runs. tests/run/test_schedule.py drives it with a held clock.
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
from headrace.core.worker import Worker, problems_of
from headrace.define.settings import Settings
from headrace.log.protocol import LogWriter
from headrace.run.pipeline import Pipeline
from headrace.run.tables import Tables
from headrace.serving.retention import Retention
from headrace.spark.jobs import POLL_S, BatchJobs

TICK_S = 0.1
PATIENCE_S = 2.0  # for the step that runs when all is to stop, before it is cancelled
TIDY_US = 60 * SECOND


@dataclass(slots=True, eq=False)
class Wish:
    """A full build of a view that somebody waits for."""

    stream: str
    view: str
    end: Position  # of the log when it was asked for
    asked_at_us: int
    started_at_us: int | None = None
    done: Future[BuildResult] = field(default_factory=Future)


class _Due:
    """When each kind of periodic work is done next."""

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
        retention: Retention | None = None,
        jobs: BatchJobs | None = None,
    ) -> None:
        self.pipelines, self.topics, self.settings = pipelines, topics, settings
        self.report, self.clock, self.tables = report, clock, tables
        self.retention, self._jobs, self._joined = retention, jobs, False
        self.generations = 0
        self.events = 0
        self.differences: Counter[str] = Counter()  # by view
        self._problems = Problems("schedule", report)
        self._stop = threading.Event()
        self._ended = False
        self._wishes: list[Wish] = []  # that are not done yet
        self._lock = threading.Lock()
        self._steps = threading.Lock()  # held while steps are done
        self._due = _Due(self.clock(), settings)
        self._worker = Worker("schedule", self._turn, self._stop, report)

    @property
    def problems(self) -> list[Problem]:
        return [*self._problems, *problems_of([self._worker])]

    def start(self) -> None:
        self._due = _Due(self.clock(), self.settings)
        self._worker.start()

    def stop(self) -> None:
        self._stop.set()
        self._worker.join(PATIENCE_S)
        while self._jobs and self._worker.alive:
            self._jobs.cancel()
            self._worker.join(POLL_S)
        self._worker.join()
        self._end()

    def paused(self) -> AbstractContextManager[object]:
        """No step is done meanwhile; one that has begun is waited for."""
        return self._steps

    def replace(self, pipelines: dict[str, Pipeline], tables: Tables) -> None:
        """Work for other pipelines from the next turn on."""
        for name in self.pipelines.keys() - pipelines.keys():
            self._problems.forget("flow", name)
        for name in self._tables.keys() - tables.tables.keys():
            self._problems.forget("table", name)
        self.pipelines, self.tables = pipelines, tables

    def rebuild(self, stream: str, view: str) -> Future[BuildResult]:
        """Ask for a full build of a view."""
        wish = Wish(stream, view, self.pipelines[stream].end(), self.clock())
        with self._lock:
            self._wishes.append(wish)
        if self._ended:
            self._refuse_wishes()
        return wish.done

    def rebuilding(self, view: str) -> Wish | None:
        """The full build of a view that runs or waits, if one was asked for."""
        with self._lock:
            return next((wish for wish in self._wishes if wish.view == view), None)

    def _end(self) -> None:
        self._ended = True
        self._refuse_wishes()

    def _refuse_wishes(self) -> None:
        with self._lock:
            wishes, self._wishes = self._wishes, []
        for wish in wishes:
            reason = f"view '{wish.view}' was not built: the project is stopping"
            wish.done.set_exception(Unavailable(reason))

    def _turn(self) -> float:
        if self._jobs and not self._joined:
            self._jobs.join()
            self._joined = True
        # Whoever has paused the steps may build for hours, and a stop does not wait for that.
        if self._steps.acquire(blocking=False):
            try:
                self._do_due()
            finally:
                self._steps.release()
        return TICK_S

    def _do_due(self) -> None:
        """All that is due now."""
        due, now, settings = self._due, self.clock(), self.settings
        self._grant_wishes()
        if now >= due.reload_at:
            self._reload()
            due.reload_at = now + settings.tables.interval_us
        if now >= due.archive_at:
            self._each("archive", lambda name, pipeline: pipeline.archive())
            due.archive_at = self.clock() + settings.archive.interval_us
        if now >= due.build_at:
            self._each("batch", self._build)
            due.build_at = now + settings.batch.interval_us
        if now >= due.tidy_at:
            self._tidy()
            due.tidy_at = now + TIDY_US

    def _tidy(self) -> None:
        self._each("tidy", lambda name, pipeline: pipeline.tidy(self.topics))
        if self.retention:
            key = ProblemKey("part", "ledger", "tidy")
            self._tried(key, "the ledger was not tidied", self.retention.tidy)

    def _each(self, what: str, action: Callable[[str, Pipeline], object]) -> None:
        for name, pipeline in self.pipelines.items():
            failed = f"{what} of stream '{name}' failed"
            self._tried(ProblemKey("flow", name, what), failed, partial(action, name, pipeline))
            if self._stop.is_set():
                return

    def _reload(self) -> None:
        """Each table by itself: one that cannot be read keeps no other from being reloaded."""
        for name in self._tables:
            failed = f"table '{name}' was not reloaded"
            self._tried(
                ProblemKey("table", name, "reload"), failed, partial(self._reload_one, name)
            )

    def _reload_one(self, name: str) -> None:
        if self.tables and (version := self.tables.reload(name)):
            self.report("table", {"table": name, "version": version})

    @property
    def _tables(self) -> dict[str, TablePlan]:
        return self.tables.tables if self.tables else {}

    def _tried(self, key: ProblemKey, failed: str, action: Callable[[], object]) -> None:
        """One step; a failure is a problem until the step is done, and a step that was cancelled
        has not failed.
        """
        try:
            action()
            self._problems.over(key)
        except Exception as error:
            if self._stop.is_set():
                return
            self._problems.note(key, f"{failed}: {reason_of(error)}", error)
            if isinstance(error, Fenced):
                # Nothing that this process does can count any more.
                self._stop.set()
                self._end()

    def _build(self, name: str, pipeline: Pipeline) -> None:
        # What is archived limits how far a build can go.
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

    def _grant_wishes(self) -> None:
        with self._lock:
            wishes = list(self._wishes)
        for wish in wishes:
            try:
                if not self.pipelines[wish.stream].has_taken(wish.end):
                    continue
                wish.started_at_us = self.clock()
                promoted = self._rebuilt(wish)
            except Exception as error:
                if self._stop.is_set():
                    return  # it was cancelled, and all wishes are refused
                self._forget(wish)
                wish.done.set_exception(error)
            else:
                self._forget(wish)
                wish.done.set_result(promoted)

    def _rebuilt(self, wish: Wish) -> BuildResult:
        promoted = self.pipelines[wish.stream].rebuild(wish.view)
        if promoted is None:
            raise HeadraceError(f"view '{wish.view}' was not built")
        self.note_promoted(promoted)
        return promoted

    def _forget(self, wish: Wish) -> None:
        """Before its end is told, so that whoever hears of it does not still find it."""
        with self._lock:
            self._wishes.remove(wish)
