"""Evaluates the rules and the watches of a running project, each in one thread.

After each committed epoch or generation, new alerts and matches are saved together with their
notifications in the outbox, before any of them is delivered (headrace/run/delivery_worker.py). A
rule that fails is reported as a problem and evaluated again; it stops neither other rules nor any
view. tests/run/test_alerts.py and tests/run/test_watches.py drive them without Spark,
tests/run/test_alerts_killed.py kills them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from functools import partial

from headrace.compile.plan import Plan
from headrace.core.errors import Fenced
from headrace.core.problems import Problem, ProblemKey, Problems, deduplicated, reason_of
from headrace.core.report import Report
from headrace.core.time import SECOND, Clock, now_us
from headrace.core.worker import Worker, problems_of
from headrace.serving import watches
from headrace.serving.alert_raiser import AlertRaiser
from headrace.serving.database import Database
from headrace.serving.match_raiser import MatchRaiser
from headrace.serving.notifications import fail_orphaned

TURN_S, STOP_S_MAX, CLOSE_US = 0.1, 15.0, SECOND


class _Evaluator:
    """A thread that calls `evaluate`, and the problems of its steps."""

    def __init__(
        self, plan: Plan, db: Database, report: Report, clock: Clock, kind: str, name: str
    ) -> None:
        self.plan, self.db, self.clock = plan, db, clock
        self._problems = Problems(kind, report)
        self._stop = threading.Event()
        self._worker = Worker(name, self._turn, self._stop, report)

    @property
    def problems(self) -> list[Problem]:
        return deduplicated(problems_of([self._worker]), self._problems)

    def stop(self) -> None:
        """Evaluate once more, and end."""
        self._stop.set()
        self._worker.join(STOP_S_MAX)
        self.evaluate()

    def evaluate(self) -> None:
        raise NotImplementedError

    def _turn(self) -> float:
        self.evaluate()
        return TURN_S

    def _attempt(self, key: ProblemKey, what: str, step: Callable[[], object]) -> None:
        try:
            step()
            self._problems.over(key)
        except Fenced:
            self._stop.set()
        except Exception as error:
            self._problems.note(key, f"{what} failed: {reason_of(error)}", error)


class RuleEvaluator(_Evaluator):
    """Evaluates all rules of a plan."""

    def __init__(self, plan: Plan, db: Database, report: Report, clock: Clock = now_us) -> None:
        super().__init__(plan, db, report, clock, "rule", "rules")
        self.raiser = AlertRaiser(db, clock)
        self._held: frozenset[str] = frozenset()

    def start(self, hold: Collection[str] = ()) -> None:
        """Start; the rules in `hold` are not evaluated before `release`."""
        self._held = frozenset(hold)
        if self.plan.rules:
            self._worker.start()

    def release(self) -> None:
        """Evaluate all rules, since the plan's views have been built, and give up notifications for
        destinations that no rule names any more. Not before, because a plan that cannot be built is
        rolled back.
        """
        self._held = frozenset()
        fail_orphaned(self.db, self.plan.rules, self.clock())

    def evaluate(self) -> None:
        for rule in self.plan.rules:
            if rule.name not in self._held:
                key = ProblemKey("rule", rule.name, "evaluate")
                self._attempt(key, f"rule '{rule.name}'", partial(self.raiser.evaluate, rule))


class WatchEvaluator(_Evaluator):
    """Evaluates all watches of a plan, and ends those that are due."""

    def __init__(
        self,
        plan: Plan,
        db: Database,
        report: Report,
        close: Callable[[set[str]], None],
        clock: Clock = now_us,
    ) -> None:
        super().__init__(plan, db, report, clock, "watch", "watches")
        self.raiser, self.close = MatchRaiser(db, clock), close
        self._closed_at = 0

    def start(self) -> None:
        self._worker.start()

    def evaluate(self) -> None:
        """Notify new matches, then end the watches that are due: earlier matches still count."""
        for shape in self.plan.shapes:
            evaluate = partial(self.raiser.evaluate, shape)
            self._attempt_part(f"evaluation of watches of shape {shape.name}", evaluate)
        self._attempt_part("ending expired watches", self.raiser.end_expired)

    def _turn(self) -> float:
        self.evaluate()
        self._attempt_part("closing ended watches", self._close)
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

    def _attempt_part(self, what: str, step: Callable[[], object]) -> None:
        self._attempt(ProblemKey("part", "watches", what), what, step)
