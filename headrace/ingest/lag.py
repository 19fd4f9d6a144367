"""Back-pressure: nothing is accepted while speed lags more than the limit.

The lag is read at most ten times a second, and what was accepted since is added to it.
tests/ingest/test_lag.py checks the refusal and the recovery.
"""

from __future__ import annotations

from collections.abc import Callable

from headrace.core.errors import Overloaded
from headrace.core.time import MILLISECOND, Clock

CHECK_US = 100 * MILLISECOND


class LagGuard:
    """Refuses while more than `events_max` events wait for speed; without a limit it never does."""

    def __init__(
        self, stream: str, events_max: int | None, lag: Callable[[], int], clock: Clock
    ) -> None:
        self._stream, self._most, self._lag, self._clock = stream, events_max, lag, clock
        self._asked_us: int | None = None
        self._waiting = 0

    def check(self, records: int) -> None:
        """Count these records in, or raise Overloaded if there are too many before them."""
        if self._most is None:
            return
        now = self._clock()
        # A clock that was set back must not stop the check.
        if self._asked_us is None or abs(now - self._asked_us) >= CHECK_US:
            self._waiting, self._asked_us = self._lag(), now
        if self._waiting > self._most:
            raise Overloaded(
                f"{self._waiting} events of stream '{self._stream}' wait for speed, "
                f"and its lag_events_max is {self._most}",
                detail="nothing of this request was accepted.",
                hint="send it again after the time in Retry-After.",
            )
        self._waiting += records
