"""A look at a project's health once a second, which reports what nobody has reported.

Workers and parts report their problems when they occur. What only whoever looks can see (events
that wait, steps that hang, a query that failed) is reported here, once each, if it is bad.
tests/run/test_health_watch.py checks it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence

from headrace.core.problems import Problem, Problems
from headrace.core.report import Report
from headrace.core.worker import Worker

LOOK_S, SHARE = 1.0, 10


class HealthWatch:
    """`look` gives all problems, and `said` those that were reported by others."""

    def __init__(
        self,
        look: Callable[[], Sequence[Problem]],
        said: Callable[[], Iterable[Problem]],
        stop: threading.Event,
        report: Report,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look, self._said, self._clock = look, said, clock
        self._told = Problems("health", report)
        self.known: Sequence[Problem] = ()  # of the last look
        self.worker = Worker("health", self.turn, stop, report)

    def turn(self) -> float:
        """One look; the seconds until the next."""
        began, said = self._clock(), {problem.message for problem in self._said()}
        self.known = self._look()
        bad = (problem for problem in self.known if problem.level == "bad")
        new = {problem.key: problem.message for problem in bad if problem.message not in said}
        for told in self._told:
            if told.key not in new:
                self._told.over(told.key)
        for key, message in new.items():
            self._told.note(key, message)
        # A look at many streams takes long, and may not take more than a tenth of the time.
        return max(LOOK_S, SHARE * (self._clock() - began))
