"""Evaluates the watches of a running project in one thread, and ends those that are due.

Matches are saved in the outbox before any of them is delivered (headrace/run/delivery_worker.py).
tests/run/test_watches.py drives it without Spark.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from headrace.compile.plan import Plan
from headrace.core.errors import Fenced
from headrace.core.problems import Problem, ProblemKey, Problems, deduplicated, reason_of
from headrace.core.report import Report
from headrace.core.time import SECOND, Clock, now_us
from headrace.core.worker import Worker, problems_of
from headrace.run.rule_evaluator import STOP_S_MAX
from headrace.serving import watches
from headrace.serving.database import Database
from headrace.serving.match_raiser import MatchRaiser

TURN_S, CLOSE_US = 0.1, SECOND


class WatchEvaluator:
    """Evaluates all watches of a plan."""

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
        """Evaluate the watches once more, and end."""
        self._stop.set()
        self._worker.join(STOP_S_MAX)
        self.evaluate()

    def evaluate(self) -> None:
        """Notify new matches, then end the watches that are due: earlier matches still count."""
        for shape in self.plan.shapes:
            evaluate = partial(self.raiser.evaluate, shape)
            self._attempt(f"evaluation of watches of shape {shape.name}", evaluate)
        self._attempt("the end of watches", self.raiser.end_expired)

    def _turn(self) -> float:
        self.evaluate()
        self._attempt("the closing of watches", self._close)
        return TURN_S

    def _close(self) -> None:
        """Remove the constants of ended watches, at most once per CLOSE_US: Spark reloads them."""
        if self.clock() - self._closed_at < CLOSE_US:
            return
        self._closed_at = self.clock()
        with self.db.read() as db:
            shapes = watches.shapes_to_close(db) & {shape.name for shape in self.plan.shapes}
        if shapes:
            self.close(shapes)

    def _attempt(self, what: str, step: Callable[[], object]) -> None:
        key = ProblemKey("part", "watches", what)
        try:
            step()
            self._problems.over(key)
        except Fenced:
            self._stop.set()
        except Exception as error:
            self._problems.note(key, f"{what} failed: {reason_of(error)}", error)
