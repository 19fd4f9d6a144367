"""The starts of speed's queries: few at a time, and again after a failure.

Each query has a Python process, and Spark waits 10 seconds for one to connect, whatever the machine
does meanwhile. Many that start at once take that time from each other, fail together and would
return together. So a start enters a gate and leaves it when its query has begun or failed; the
pause after a failure doubles each time and is drawn at random. tests/run/test_starts.py checks it.
"""

from __future__ import annotations

import os
from enum import Enum
from random import Random
from typing import Any, Protocol

import structlog

from headrace.core.paths import without_paths
from headrace.core.time import SECOND, Clock, now_us
from headrace.core.worker import backoff

log = structlog.get_logger()
RETRY_MIN_US, RETRY_MAX_US = SECOND, 60 * SECOND


def starts_max(cores: int | None = None) -> int:
    """How many streams start at a time: a core is left to Spark itself.

    >>> [starts_max(cores) for cores in (1, 2, 4, 64)]
    [1, 1, 2, 8]
    """
    return max(1, min(8, (cores or os.cpu_count() or 1) // 2))


class Starts:
    """The starts in progress. Only the schedule enters; whoever stops a query leaves for it."""

    def __init__(self, most: int | None = None) -> None:
        self.most = most or starts_max()
        self._inside: set[str] = set()

    def enter(self, name: str) -> bool:
        """Whether this one may start now; if so it is inside until it leaves."""
        if len(self._inside) >= self.most:
            return False
        self._inside.add(name)
        return True

    def leave(self, name: str) -> None:
        self._inside.discard(name)


class Startable(Protocol):
    """A streaming query, once it was started."""

    query: Any

    def start(self) -> Any: ...

    def begun(self) -> bool:
        """Whether its sources have answered."""


class Phase(Enum):
    """Of a query: it waits for its turn, starts, or runs."""

    WAITING, STARTING, RUNNING = range(3)


class Starter:
    """Keeps one query running: `mend` does the next thing for it."""

    def __init__(
        self,
        name: str,
        speed: Startable,
        starts: Starts,
        clock: Clock = now_us,
        rng: Random | None = None,
    ) -> None:
        self.name, self.speed, self.starts = name, speed, starts
        self.clock, self.rng = clock, rng or Random()
        self.started = False  # whether the query has begun once, or failed to
        self.problem: str | None = None
        self.failures = 0  # in a row
        self._phase, self._retry_at = Phase.WAITING, 0

    def mend(self) -> None:
        """Start the query when it is its turn, and again if it has failed."""
        query, now = self.speed.query, self.clock()
        if self._phase is Phase.WAITING:
            if now >= self._retry_at and self.starts.enter(self.name):
                self._start(now)
        elif not query.isActive:
            self._failed(query.exception(), now)
        elif self._phase is Phase.STARTING and self.speed.begun():
            self.starts.leave(self.name)
            self._phase, self.started, self.problem = Phase.RUNNING, True, None
        elif now - self._retry_at > RETRY_MAX_US:
            # A query that has lived through the longest pause is well again.
            self.failures = 0

    def stop(self) -> None:
        """Make room for others, if the query is stopped while it starts."""
        self.starts.leave(self.name)

    def _start(self, now_us: int) -> None:
        self._phase = Phase.STARTING
        try:
            self.speed.start()
        except Exception as error:
            self._failed(error, now_us)

    def _failed(self, error: Any, now_us: int) -> None:
        """Wait for another start."""
        self.starts.leave(self.name)
        self._phase, self.started = Phase.WAITING, True
        self.failures += 1
        pause = int(backoff(self.failures, RETRY_MIN_US, RETRY_MAX_US, self.rng))
        self._retry_at, self.problem = now_us + pause, sentence(error)
        said = {"stream": self.name, "problem": self.problem}
        log.error("speed.failed", **said, retry_in_s=round(pause / SECOND, 1))


def sentence(error: Any) -> str:
    """What Spark says of a failure, in one line."""
    text = without_paths(str(error)) if error is not None else "the query ended by itself"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if "Error" in line or "Exception" in line]
    return (told[-1] if told else lines[0] if lines else "unknown")[:300]
