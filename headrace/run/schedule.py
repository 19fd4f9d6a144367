"""What happens again and again: archive, build, mend, reload, tidy. One thread, one step at a time.

A step that fails is reported and tried again at its next turn; it never stops the others.
`rebuild` asks for a full build at the next turn and waits for it; `rebuilding` tells how far it is.
tests/run/test_schedule.py drives it with a held clock.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

import structlog

from headrace.batch.build import Promoted
from headrace.core.errors import Fenced, HeadraceError, Unavailable
from headrace.core.report import Report
from headrace.core.time import SECOND, Clock, now_us
from headrace.define.settings import Settings
from headrace.log.topic import Topic
from headrace.run.pipeline import Pipeline
from headrace.run.tables import Tables
from headrace.serving.retention import Retention

log = structlog.get_logger()
TICK_S = 0.1
TIDY_US = 60 * SECOND


@dataclass(slots=True, eq=False)
class Wish:
    """A full build of a view that somebody waits for."""

    stream: str
    view: str
    asked_at_us: int
    started_at_us: int | None = None
    done: Future[Promoted] = field(default_factory=Future)


class Schedule:
    """Runs the periodic work of all streams."""

    def __init__(
        self,
        pipelines: dict[str, Pipeline],
        topics: dict[str, Topic],
        settings: Settings,
        report: Report,
        clock: Clock = now_us,
        tables: Tables | None = None,
        retention: Retention | None = None,
    ) -> None:
        self.pipelines, self.topics, self.settings = pipelines, topics, settings
        self.report, self.clock, self.tables = report, clock, tables
        self.retention = retention
        self.generations = 0
        self.events = 0
        self.differences: Counter[str] = Counter()  # by view
        self.problems: dict[str, str] = {}
        self._stop = threading.Event()
        self._ended = False
        self._wishes: list[Wish] = []
        self._granted: list[Wish] = []  # of this turn, and not done yet
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="schedule", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def go_on_from(self, before: Schedule) -> None:
        """Count on from another schedule of the same run."""
        self.generations, self.events = before.generations, before.events
        self.differences = before.differences

    def rebuild(self, stream: str, view: str) -> Future[Promoted]:
        """Ask for a full build of a view."""
        wish = Wish(stream, view, self.clock())
        with self._lock:
            self._wishes.append(wish)
        if self._ended:
            self._refuse_wishes()
        return wish.done

    def rebuilding(self, view: str) -> Wish | None:
        """The full build of a view that runs or waits, if one was asked for."""
        with self._lock:
            return next((wish for wish in self._granted + self._wishes if wish.view == view), None)

    def _run(self) -> None:
        try:
            self._work()
        finally:
            self._ended = True
            self._refuse_wishes()

    def _refuse_wishes(self) -> None:
        with self._lock:
            wishes, self._wishes = self._wishes, []
        for wish in wishes:
            reason = f"view '{wish.view}' was not built: the project is stopping"
            wish.done.set_exception(Unavailable(reason))

    def _work(self) -> None:
        archive_at = build_at = self.clock()
        build_at += self.settings.batch.interval_us
        tidy_at = self.clock() + TIDY_US
        reload_at = self.clock() + self.settings.tables.interval_us
        while not self._stop.wait(TICK_S):
            now = self.clock()
            self._each("speed", lambda name, pipeline: pipeline.mend())
            self._grant_wishes()
            if now >= reload_at:
                self._alone("tables were not reloaded", self._reload)
                reload_at = now + self.settings.tables.interval_us
            if now >= archive_at:
                self._each("archive", lambda name, pipeline: pipeline.archive())
                archive_at = self.clock() + self.settings.archive.interval_us
            if now >= build_at:
                self._each("batch", self._build)
                build_at = now + self.settings.batch.interval_us
            if now >= tidy_at:
                self._each("tidy", lambda name, pipeline: pipeline.tidy(self.topics))
                if self.retention:
                    self._alone("the ledger was not tidied", self.retention.tidy)
                tidy_at = now + TIDY_US

    def _each(self, what: str, action: Callable[[str, Pipeline], object]) -> None:
        for name, pipeline in self.pipelines.items():
            try:
                action(name, pipeline)
                self.problems.pop(f"{what} {name}", None)
            except Fenced as error:
                # Nothing that this process does can count any more.
                self._note(what, name, error)
                self._stop.set()
                return
            except Exception as error:
                self._note(what, name, error)

    def _reload(self) -> None:
        for name, version in (self.tables.reload() if self.tables else {}).items():
            self.report("table", {"table": name, "version": version})

    def _alone(self, failed: str, action: Callable[[], object]) -> None:
        """What is done for all streams at once."""
        try:
            action()
            self.problems.pop(failed, None)
        except Exception as error:
            sentence = f"{failed}: {error}".splitlines()[0][:300]
            if self.problems.get(failed) != sentence:
                self.problems[failed] = sentence
                log.error("schedule.failed", what=failed, exc_info=error)
                self.report("problem", {"message": sentence})

    def _note(self, what: str, name: str, error: Exception) -> None:
        message = (
            error.message
            if isinstance(error, HeadraceError)
            else f"{type(error).__name__}: {error}"
        )
        sentence = f"{what} of stream '{name}' failed: {message.splitlines()[0][:300]}"
        if self.problems.get(f"{what} {name}") != sentence:
            self.problems[f"{what} {name}"] = sentence
            log.error("schedule.failed", what=what, stream=name, exc_info=error)
            self.report("problem", {"message": sentence})

    def _build(
        self, name: str, pipeline: Pipeline, full: frozenset[str] = frozenset()
    ) -> Promoted | None:
        # What is archived limits how far a build can go.
        pipeline.archive()
        promoted = pipeline.build(full)
        if promoted is not None:
            self.note_promoted(promoted)
        return promoted

    def note_promoted(self, promoted: Promoted) -> None:
        """Count and report a generation."""
        self.generations += 1
        self.events += promoted.events
        differing = {
            audit.view: audit.differences for audit in promoted.audits if audit.differences
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
            self._granted, self._wishes = self._wishes, []
        while self._granted:
            wish = self._granted[0]
            wish.started_at_us = self.clock()
            try:
                promoted = self._rebuilt(wish)
            except Exception as error:
                self._forget(wish)
                wish.done.set_exception(error)
            else:
                self._forget(wish)
                wish.done.set_result(promoted)

    def _rebuilt(self, wish: Wish) -> Promoted:
        pipeline = self.pipelines[wish.stream]
        promoted = self._build(wish.stream, pipeline, frozenset({wish.view}))
        if promoted is None:
            raise HeadraceError(f"view '{wish.view}' was not built")
        return promoted

    def _forget(self, wish: Wish) -> None:
        """Before its end is told, so that whoever hears of it does not still find it."""
        with self._lock:
            self._granted.remove(wish)
