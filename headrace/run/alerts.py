"""The rules of a running project: one thread looks for alerts.

After each commit of an epoch or a generation the rules are looked for; what a look finds is saved
with its notifications in the outbox before anything is delivered (headrace/run/deliveries.py). A
rule that fails says so and is looked for again; it stops neither the others nor any view.
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
    """All rules of a project."""

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
        """Start; the rules to hold are not looked for until they are released."""
        self._held = frozenset(hold)
        if self.plan.rules:
            self._worker.start()

    def release(self) -> None:
        """The plan's views have been built: look for all rules, and end what waits for a
        destination that none of them names. Not before, because a plan that cannot be built is
        taken back.
        """
        self._held = frozenset()
        fail_orphaned(self.db, self.plan.rules, self.clock())

    def stop(self) -> None:
        """Raise what there is, and end."""
        self._stop.set()
        self._worker.join(STOP_S_MAX)
        self.look()

    def look(self) -> None:
        for rule in self.plan.rules:
            if rule.name not in self._held:
                self._look(rule)

    def _turn(self) -> float:
        self.look()
        return TURN_S

    def _look(self, rule: RulePlan) -> None:
        key = ProblemKey("rule", rule.name, "look")
        try:
            self.raiser.evaluate(rule)
            self._problems.over(key)
        except Fenced:
            self._stop.set()
        except Exception as error:
            self._problems.note(key, f"rule '{rule.name}' failed: {reason_of(error)}", error)
