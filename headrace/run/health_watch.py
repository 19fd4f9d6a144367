"""A look at a project's health once a second, which reports what nobody has reported.

Workers and parts report their problems when they occur. What only whoever looks can see (events
that wait, steps that hang, a query that failed) is reported here, once each, if it is bad.
tests/run/test_health_watch.py checks it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence

from headrace.api.service import Problem
from headrace.core.problems import Problems
from headrace.core.report import Report
from headrace.core.worker import Worker

LOOK_S, SHARE = 1.0, 10


class HealthWatch:
    """`look` gives all problems, and `said` the sentences that were reported by others."""

    def __init__(
        self,
        look: Callable[[], Sequence[Problem]],
        said: Callable[[], Collection[str]],
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
        began, said = self._clock(), set(self._said())
        self.known = self._look()
        new = {p.about: p.message for p in self.known if p.level == "bad" and p.message not in said}
        for about in self._told.keys() - new.keys():
            self._told.over(about)
        for about, message in new.items():
            self._told.note(about, message)
        # A look at many streams takes long, and may not take more than a tenth of the time.
        return max(LOOK_S, SHARE * (self._clock() - began))
