"""Limits of concurrency and rate, per user and in all. Everything here is for one event loop.

A token bucket may go into debt by one request of any size, and accepts the next one when the debt
is paid back. So no request is too large to be accepted, and over time the rate holds.
tests/api/test_limits.py controls the clock.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial

from headrace.access.policy import AccessPolicy
from headrace.core.errors import Overloaded
from headrace.define.settings import AccessSettings


class ConcurrencyLimit:
    """Allows a fixed number of requests at a time, and refuses the rest."""

    def __init__(self, most: int, refusal: Callable[[int], Overloaded]) -> None:
        self._most, self._refusal, self._in_progress = most, refusal, 0

    @property
    def full(self) -> bool:
        return self._in_progress >= self._most

    def enter(self) -> None:
        if self.full:
            raise self._refusal(self._most)
        self._in_progress += 1

    def leave(self) -> None:
        self._in_progress -= 1

    def __enter__(self) -> None:
        self.enter()

    def __exit__(self, *_: object) -> None:
        self.leave()


class TokenBucket:
    """An average rate per second."""

    def __init__(self, per_second: int, clock: Callable[[], float]) -> None:
        self._per_second, self._clock = per_second, clock
        self._left, self._at = float(per_second), clock()

    def wait_s(self) -> float:
        """The time until the next request is accepted; 0 if it is now."""
        now = self._clock()
        self._left += (now - self._at) * self._per_second
        self._left, self._at = min(self._left, float(self._per_second)), now
        return max(0.0, -self._left / self._per_second)

    def take(self, many: int) -> None:
        self._left -= many


class UserLimits:
    """The limits of each user."""

    def __init__(
        self, settings: AccessSettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings, self._clock = settings, clock
        self._gates: dict[str, ConcurrencyLimit] = {}
        self._buckets: dict[str, TokenBucket] = {}

    def query(self, user: str) -> ConcurrencyLimit:
        """Held while a query of the user runs."""
        if user not in self._gates:
            refusal = partial(_too_many_queries, user)
            self._gates[user] = ConcurrencyLimit(self._settings.queries_max, refusal)
        return self._gates[user]

    def take_bytes(self, user: str, many: int) -> None:
        """Count the bytes of a request; Overloaded if the user is above the rate."""
        per_second = self._settings.bytes_per_second_max
        bucket = self._buckets.get(user)
        if bucket is None:
            bucket = self._buckets[user] = TokenBucket(per_second, self._clock)
        if wait_s := bucket.wait_s():
            raise _rate_exceeded(user, per_second, wait_s)
        bucket.take(many)


def policy_of(settings: AccessSettings) -> AccessPolicy:
    return AccessPolicy(
        settings.session_life_us,
        settings.session_idle_us,
        settings.token_life_max_us,
        settings.failures_max,
    )


def overloaded(most: int) -> Overloaded:
    return Overloaded(
        f"more than {most} requests are in progress",
        detail="nothing of this request was accepted.",
        hint="send it again after the time in Retry-After.",
    )


def _too_many_queries(user: str, most: int) -> Overloaded:
    return Overloaded(
        f"{user} already has {most} queries in progress",
        hint="wait until one ends, or raise access.queries_max in headrace.toml.",
    )


def _rate_exceeded(user: str, per_second: int, wait_s: float) -> Overloaded:
    error = Overloaded(
        f"{user} sends more than {per_second:,} bytes a second",
        detail="nothing of this request was accepted.",
        hint="send it again after the time in Retry-After, or raise access.bytes_per_second_max.",
    )
    error.retry_after_s = math.ceil(wait_s)
    return error
