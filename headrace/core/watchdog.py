"""Steps in progress, and an alarm for each that has not ended within its limit.

An alarm is a sentence that stays the same as long as the step runs, and is over when it ends. If
Spark dies, one of the steps that were in progress, or have just failed, was probably the cause.
tests/core/test_watchdog.py holds the clock.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from headrace.core.problems import Problem, ProblemKey
from headrace.core.time import SECOND, Clock, duration_text, iso, now_us

FAILED_KEPT, JUST_US = 10, 10 * SECOND


@dataclass(frozen=True, slots=True, eq=False)
class WatchdogTimer:
    """A step in progress: `what` it is, and the key of its problem if it hangs."""

    key: ProblemKey
    what: str
    limit_us: int
    began_us: int

    def overdue(self, at_us: int) -> bool:
        return at_us - self.began_us > self.limit_us

    @property
    def alarm(self) -> Problem:
        said = f"{self.what} has not completed within {duration_text(self.limit_us)}"
        return Problem(*self.key, said, since=iso(self.began_us))


class Watchdog:
    """The steps in progress.

    >>> dog = Watchdog(lambda: 0)
    >>> key = ProblemKey("flow", "clicks", "speed")
    >>> with dog.step(key, "an epoch of stream 'clicks'", 60_000_000):
    ...     dog.suspects
    ["an epoch of stream 'clicks'"]
    >>> dog.suspects
    []
    """

    def __init__(self, clock: Clock = now_us) -> None:
        self._clock = clock
        self._steps: list[WatchdogTimer] = []
        self._failed: deque[tuple[int, str]] = deque(maxlen=FAILED_KEPT)  # when, and what
        self._lock = threading.Lock()

    @contextmanager
    def step(self, key: ProblemKey, what: str, limit_us: int) -> Iterator[None]:
        """Register a step for the time of a block."""
        step = WatchdogTimer(key, what, limit_us, self._clock())
        with self._lock:
            self._steps.append(step)
        try:
            yield
        except BaseException:
            self._failed.append((self._clock(), what))
            raise
        finally:
            with self._lock:
                self._steps.remove(step)

    @property
    def suspects(self) -> list[str]:
        """The steps in progress, and those that have just failed."""
        since = self._clock() - JUST_US
        failed = [what for at, what in list(self._failed) if at >= since]
        with self._lock:
            return list(dict.fromkeys([*failed, *(step.what for step in self._steps)]))

    @property
    def problems(self) -> list[Problem]:
        """The alarms."""
        now = self._clock()
        with self._lock:
            return [step.alarm for step in self._steps if step.overdue(now)]
