"""A thread that runs turns until it is stopped, and survives every failure of a turn.

A turn that fails is a problem of the worker and is tried again after a pause, which doubles and is
drawn at random, so that workers that failed together do not return together. The problem is over
when a turn has ended well. Where a turn lasts as long as the worker, as that of a connector does,
it is also over when the turn has run for `settled_s`. A process that was replaced (Fenced) is the
one failure that ends a worker; its problem stays. tests/core/test_worker.py checks each.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable
from random import Random

from headrace.core.errors import Fenced
from headrace.core.problems import Problem, ProblemKey, Problems, reason_of
from headrace.core.report import Report

RETRY_MIN_S, RETRY_MAX_S = 1.0, 30.0
Turn = Callable[[], float | None]  # seconds until the next turn; None: the work is done


def backoff(failures: int, least: float, most: float, rng: Random) -> float:
    """The back-off after a number of failures in a row: random, between half of the doubled pause
    and all of it.

    >>> [backoff(n, 1.0, 30.0, Random(7)) <= min(2 ** (n - 1), 30) for n in (1, 2, 100)]
    [True, True, True]
    """
    whole: float = min(least * 2.0 ** min(failures - 1, 40), most)
    return whole * rng.uniform(0.5, 1.0)


class Worker:
    """One thread; `first_s` is the pause before its first turn. What makes it fail is a problem of
    `key`, or of the part of the run that has its name.
    """

    def __init__(
        self,
        name: str,
        turn: Turn,
        stop: threading.Event,
        report: Report = lambda kind, fields: None,
        *,
        key: ProblemKey | None = None,
        first_s: float = 0.0,
        settled_s: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
        rng: Random | None = None,
    ) -> None:
        self.name, self._turn, self._stop = name, turn, stop
        self._key = key or ProblemKey("part", name, "worker")
        self._problems = Problems("worker", report)
        self._first_s, self._settled_s = first_s, settled_s
        self._clock, self._rng = clock, rng or Random()
        self._failures = 0
        self._began_s: float | None = None  # the turn that runs
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self, timeout: float | None = None) -> None:
        if self._thread.is_alive():
            self._thread.join(timeout)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def problem(self) -> Problem | None:
        """The error of the last turn, until a turn succeeds or has run for `settled_s`."""
        began = self._began_s
        settled = began is not None and self._clock() - began >= self._settled_s
        return None if settled else self._problems.get(self._key)

    def _run(self) -> None:
        pause: float | None = self._first_s
        while pause is not None and not self._stop.wait(pause):
            pause = self._tried()

    def _tried(self) -> float | None:
        """One turn; the pause after it."""
        self._began_s = self._clock()
        try:
            pause = self._turn()
        except BaseException as error:
            self._note(error)
            fenced = isinstance(error, Fenced)
            return None if fenced else backoff(
                self._failures, RETRY_MIN_S, RETRY_MAX_S, self._rng
            )  # fmt: skip
        finally:
            self._began_s = None
        self._failures = 0
        self._problems.over(self._key)
        return pause

    def _note(self, error: BaseException) -> None:
        # A turn that ran for `settled_s` without failing resets the back-off.
        if self.problem is None:
            self._failures = 0
            self._problems.over(self._key)
        self._failures += 1
        self._problems.note(self._key, f"{self.name} failed: {reason_of(error)}", error)


def problems_of(workers: Iterable[Worker]) -> list[Problem]:
    """The problems of workers."""
    return [problem for worker in workers if (problem := worker.problem)]
