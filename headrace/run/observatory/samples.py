"""Samples of the counters of a running project, from which rates are computed.

Only the newest samples are stored, so a rate covers about ten seconds, and a counter that stops
soon has a rate of zero. tests/run/test_samples.py holds the clock.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping

from headrace.core.report import Report
from headrace.core.time import MINUTE, SECOND, Clock
from headrace.core.worker import Worker

SAMPLE_S = 2.0
SAMPLES_KEPT = 6
DISK_US = MINUTE
Counters = Mapping[str, int]  # by the id of a node


class Samples:
    """A ring buffer of samples."""

    def __init__(self) -> None:
        self._kept: deque[tuple[int, Counters]] = deque(maxlen=SAMPLES_KEPT)

    def add(self, at_us: int, counters: Counters) -> None:
        self._kept.append((at_us, counters))

    def rate(self, id: str) -> float | None:
        """Events per second; None before two samples have the counter."""
        known = [(at, counters[id]) for at, counters in list(self._kept) if id in counters]
        if len(known) < 2 or known[-1][0] <= known[0][0]:
            return None
        (began, first), (ended, last) = known[0], known[-1]
        return round(max(0, last - first) * SECOND / (ended - began), 2)


class Sampler:
    """Takes samples in a thread of its own, and measures the disk once a minute."""

    def __init__(
        self,
        count: Callable[[], Counters],
        measure: Callable[[int], None],
        clock: Clock,
        report: Report = lambda kind, fields: None,
    ) -> None:
        self.samples = Samples()
        self._count, self._measure, self._clock = count, measure, clock
        self._measured_at = 0
        self._stop = threading.Event()
        self.worker = Worker("samples", self.turn, self._stop, report, first_s=SAMPLE_S)

    def start(self) -> None:
        self.worker.start()

    def stop(self) -> None:
        self._stop.set()
        self.worker.join()

    def turn(self) -> float:
        """Take one sample."""
        now = self._clock()
        self.samples.add(now, self._count())
        if now - self._measured_at >= DISK_US:
            self._measure(now)
            self._measured_at = now
        return SAMPLE_S
