"""The watches of a running project: one thread looks for matches and ends what is due.

What it finds is in the outbox before anything is delivered (headrace/run/deliveries.py).
tests/run/test_watches.py drives it without Spark.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from headrace.compile.plan import Plan
from headrace.core.errors import BadDefinition, Fenced
from headrace.core.problems import Problem, ProblemKey, Problems, deduplicated, reason_of
from headrace.core.report import Report
from headrace.core.time import SECOND, Clock, now_us
from headrace.core.worker import Worker, problems_of
from headrace.define.definitions import WatchDefinition
from headrace.define.project import Project
from headrace.run.added import read_kind
from headrace.run.alerts import STOP_S_MAX
from headrace.serving import watches
from headrace.serving.database import Database
from headrace.serving.match_raiser import MatchRaiser
from headrace.serving.sqlite_store import SqliteStore

TURN_S, CLOSE_US = 0.1, SECOND


def with_watches(
    project: Project, store: SqliteStore, more: tuple[WatchDefinition, ...] = ()
) -> Project:
    """The project with one watch of each shape that the store keeps, and with these: what decides
    on the plan.
    """
    with store.read() as db:
        texts, names = watches.kept_shapes(db), watches.kept_names(db)
    said = {d.name.lower(): d for d in project.definitions}
    for name in (*names, *(watch.name for watch in more)):
        if (other := said.get(name.lower())) is not None:
            raise BadDefinition(
                f"'{name}' is defined in the project and is also a watch that was added",
                detail=f"the definition is at {other.origin}.",
                hint=f"rename one of them, or `headrace watch remove {name}`.",
            )
    kept = [read_kind(t, f"watch {shape}", WatchDefinition)[0] for shape, t in texts.items()]
    new = {watch.name.lower() for watch in more}
    both = (*(watch for watch in kept if watch.name.lower() not in new), *more)
    return project.with_added(both)


class Watches:
    """All watches of a project."""

    def __init__(
        self,
        plan: Plan,
        db: Database,
        report: Report,
        close: Callable[[set[str]], None],
        clock: Clock = now_us,
    ) -> None:
        self.plan, self.db, self.close, self.clock = plan, db, close, clock
        self.raiser = MatchRaiser(db, clock)
        self._problems = Problems("watch", report)
        self._closed_at = 0
        self._stop = threading.Event()
        self._worker = Worker("watches", self._turn, self._stop, report)

    @property
    def problems(self) -> list[Problem]:
        return deduplicated(problems_of([self._worker]), self._problems)

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        """Raise what there is, and end."""
        self._stop.set()
        self._worker.join(STOP_S_MAX)
        self.look()

    def look(self) -> None:
        """Raise what is new, then end what is due: what came before the end still counts."""
        for shape in self.plan.shapes:
            look = partial(self.raiser.evaluate, shape)
            self._tried(f"the look at watches of shape {shape.name}", look)
        self._tried("the end of watches", self.raiser.end_expired)

    def _turn(self) -> float:
        self.look()
        self._tried("the closing of watches", self._close)
        return TURN_S

    def _close(self) -> None:
        """Ended watches are compared no more; not at each end, because Spark reads anew."""
        if self.clock() - self._closed_at < CLOSE_US:
            return
        self._closed_at = self.clock()
        with self.db.read() as db:
            shapes = watches.shapes_to_close(db) & {shape.name for shape in self.plan.shapes}
        if shapes:
            self.close(shapes)

    def _tried(self, what: str, step: Callable[[], object]) -> None:
        key = ProblemKey("part", "watches", what)
        try:
            step()
            self._problems.over(key)
        except Fenced:
            self._stop.set()
        except Exception as error:
            self._problems.note(key, f"{what} failed: {reason_of(error)}", error)
