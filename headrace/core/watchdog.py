"""Steps in progress, and an alarm for each that has not ended within its limit.

An alarm is a sentence that stays the same as long as the step runs, and is over when it ends. If
Spark dies, one of the steps that were in progress, or have just failed, was too much for it.
tests/core/test_watchdog.py holds the clock.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from headrace.core.time import SECOND, Clock, duration_text, now_us

FAILED_KEPT, JUST_US = 10, 10 * SECOND


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One thing that is being done: `what` it is, and the key of its problem."""

    key: str
    what: str
    limit_us: int
    began_us: int

    def overdue(self, at_us: int) -> bool:
        return at_us - self.began_us > self.limit_us

    @property
    def alarm(self) -> str:
        return f"{self.what} has not ended within {duration_text(self.limit_us)}"


class Watchdog:
    """Knows what is in progress.

    >>> dog = Watchdog(lambda: 0)
    >>> with dog.step("speed clicks", "an epoch of stream 'clicks'", 60_000_000):
    ...     dog.suspects
    ["an epoch of stream 'clicks'"]
    >>> dog.suspects
    []
    """

    def __init__(self, clock: Clock = now_us) -> None:
        self._clock = clock
        self._steps: list[Step] = []
        self._failed: deque[tuple[int, str]] = deque(maxlen=FAILED_KEPT)  # when, and what
        self._lock = threading.Lock()

    @contextmanager
    def step(self, key: str, what: str, limit_us: int) -> Iterator[None]:
        """Be known as in progress for the time of a block."""
        step = Step(key, what, limit_us, self._clock())
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
        """What is being done, and what has failed just now."""
        since = self._clock() - JUST_US
        failed = [what for at, what in list(self._failed) if at >= since]
        with self._lock:
            return list(dict.fromkeys([*failed, *(step.what for step in self._steps)]))

    @property
    def problems(self) -> dict[str, str]:
        """The alarms, by key."""
        now = self._clock()
        with self._lock:
            return {step.key: step.alarm for step in self._steps if step.overdue(now)}
