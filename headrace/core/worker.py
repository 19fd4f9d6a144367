"""A thread that does turns until it is told to stop, and outlives every failure of a turn.

A turn that fails is a problem of the worker and is tried again after a pause, which doubles and is
drawn at random, so that workers that failed together do not return together. The problem is over
when a turn has ended well, or has run for `SETTLED_S`. A process that was replaced (Fenced) is the
one failure that ends a worker; its problem stays. tests/core/test_worker.py checks each.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from random import Random

from headrace.core.errors import Fenced
from headrace.core.problems import reason_of, say
from headrace.core.report import Report

RETRY_MIN_S, RETRY_MAX_S = 1.0, 30.0
SETTLED_S = 10.0
Turn = Callable[[], float | None]  # seconds until the next turn; None: the work is done


def backoff(failures: int, least: float, most: float, rng: Random) -> float:
    """The pause after so many failures in a row: between a half and the whole of what doubles.

    >>> [backoff(n, 1.0, 30.0, Random(7)) <= min(2 ** (n - 1), 30) for n in (1, 2, 100)]
    [True, True, True]
    """
    whole: float = min(least * 2.0 ** min(failures - 1, 40), most)
    return whole * rng.uniform(0.5, 1.0)


class Worker:
    """One thread; `first_s` is the pause before its first turn."""

    def __init__(
        self,
        name: str,
        turn: Turn,
        stop: threading.Event,
        report: Report = lambda kind, fields: None,
        *,
        first_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
        rng: Random | None = None,
    ) -> None:
        self.name, self._turn, self._stop, self._report = name, turn, stop, report
        self._first_s, self._clock, self._rng = first_s, clock, rng or Random()
        self._failures = 0
        self._failure: str | None = None
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
    def problem(self) -> str | None:
        """What made the last turn fail, until a turn is well."""
        began = self._began_s
        settled = began is not None and self._clock() - began >= SETTLED_S
        return None if settled else self._failure

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
        self._failures, self._failure = 0, None
        return pause

    def _note(self, error: BaseException) -> None:
        # A turn that was well for a while has ended the row of failures before it.
        self._failures = 1 if self.problem is None else self._failures + 1
        before, self._failure = self._failure, f"{self.name} failed: {reason_of(error)}"
        if self._failure != before:
            say("worker", self.name, self._failure, self._report, error)


def problems_of(workers: Iterable[Worker]) -> dict[str, str]:
    """The problems of workers, by their names."""
    return {worker.name: said for worker in workers if (said := worker.problem)}
