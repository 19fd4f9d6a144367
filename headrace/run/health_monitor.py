"""Checks a project's health once a second, and reports problems that no component has reported.

Workers and parts report their problems when they occur. Problems that only polling can detect
(events that wait, steps that hang, a query that failed) are reported here once each, if they are
bad. tests/run/test_health_monitor.py checks it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence

from headrace.core.problems import Problem, Problems
from headrace.core.report import Report
from headrace.core.worker import Worker

CHECK_S, SHARE = 1.0, 10


class HealthMonitor:
    """`check` returns all problems, and `reported` those that components have reported."""

    def __init__(
        self,
        check: Callable[[], Sequence[Problem]],
        reported: Callable[[], Iterable[Problem]],
        stop: threading.Event,
        report: Report,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._check, self._reported, self._clock = check, reported, clock
        self._problems = Problems("health", report)
        self.known: Sequence[Problem] = ()  # by the last check
        self.worker = Worker("health", self.turn, stop, report)

    def turn(self) -> float:
        """Check once; returns the seconds until the next check."""
        began, reported = self._clock(), {problem.message for problem in self._reported()}
        self.known = self._check()
        bad = (problem for problem in self.known if problem.level == "bad")
        new = {problem.key: problem.message for problem in bad if problem.message not in reported}
        for problem in self._problems:
            if problem.key not in new:
                self._problems.over(problem.key)
        for key, message in new.items():
            self._problems.note(key, message)
        # Checking many streams takes long; at most a tenth of the time is spent on it.
        return max(CHECK_S, SHARE * (self._clock() - began))
