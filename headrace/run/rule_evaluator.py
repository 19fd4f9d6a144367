"""Evaluates the rules of a running project in one thread.

After each committed epoch or generation, new alerts are saved together with their notifications in
the outbox, before any of them is delivered (headrace/run/delivery_worker.py). A rule that fails is
reported as a problem and evaluated again; it stops neither other rules nor any view.
tests/run/test_alerts.py drives it without Spark, tests/run/test_alerts_killed.py kills it.
"""

from __future__ import annotations

import threading
from collections.abc import Collection

from headrace.compile.plan import Plan, RulePlan
from headrace.core.errors import Fenced
from headrace.core.problems import Problem, ProblemKey, Problems, deduplicated, reason_of
from headrace.core.report import Report
from headrace.core.time import Clock, now_us
from headrace.core.worker import Worker, problems_of
from headrace.serving.alert_raiser import AlertRaiser
from headrace.serving.database import Database
from headrace.serving.notifications import fail_orphaned

TURN_S, STOP_S_MAX = 0.1, 15.0


class RuleEvaluator:
    """Evaluates all rules of a plan."""

    def __init__(self, plan: Plan, db: Database, report: Report, clock: Clock = now_us) -> None:
        self.plan, self.db, self.clock = plan, db, clock
        self.raiser = AlertRaiser(db, clock)
        self._problems = Problems("rule", report)
        self._held: frozenset[str] = frozenset()
        self._stop = threading.Event()
        self._worker = Worker("rules", self._turn, self._stop, report)

    @property
    def problems(self) -> list[Problem]:
        return deduplicated(problems_of([self._worker]), self._problems)

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

    def stop(self) -> None:
        """Evaluate the rules once more, and end."""
        self._stop.set()
        self._worker.join(STOP_S_MAX)
        self.evaluate()

    def evaluate(self) -> None:
        for rule in self.plan.rules:
            if rule.name not in self._held:
                self._evaluate(rule)

    def _turn(self) -> float:
        self.evaluate()
        return TURN_S

    def _evaluate(self, rule: RulePlan) -> None:
        key = ProblemKey("rule", rule.name, "evaluate")
        try:
            self.raiser.evaluate(rule)
            self._problems.over(key)
        except Fenced:
            self._stop.set()
        except Exception as error:
            self._problems.note(key, f"rule '{rule.name}' failed: {reason_of(error)}", error)
