"""What one user, and all together, may ask for at a time. Everything here is for one event loop.

A bucket may go into debt by one request, however large it is, and takes the next when it is paid
back. So there is no size that is never let through, and over time the rate holds.
tests/api/test_limits.py holds the clock.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial

from headrace.access.policy import AccessPolicy
from headrace.core.errors import Overloaded
from headrace.define.settings import AccessSettings


class Gate:
    """Lets a stated number in at a time and turns the rest away."""

    def __init__(self, most: int, refusal: Callable[[int], Overloaded]) -> None:
        self._most, self._refusal, self._inside = most, refusal, 0

    def __enter__(self) -> None:
        if self._inside >= self._most:
            raise self._refusal(self._most)
        self._inside += 1

    def __exit__(self, *_: object) -> None:
        self._inside -= 1


class Bucket:
    """So many a second, on average."""

    def __init__(self, per_second: int, clock: Callable[[], float]) -> None:
        self._per_second, self._clock = per_second, clock
        self._left, self._at = float(per_second), clock()

    def wait_s(self) -> float:
        """How long until something may be taken; 0 if it may now."""
        now = self._clock()
        self._left += (now - self._at) * self._per_second
        self._left, self._at = min(self._left, float(self._per_second)), now
        return max(0.0, -self._left / self._per_second)

    def take(self, many: int) -> None:
        self._left -= many


class Limits:
    """The limits of each user."""

    def __init__(
        self, settings: AccessSettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings, self._clock = settings, clock
        self._gates: dict[str, Gate] = {}
        self._buckets: dict[str, Bucket] = {}

    def query(self, user: str) -> Gate:
        """Held while a query of the user runs."""
        if user not in self._gates:
            refusal = partial(_too_many, user)
            self._gates[user] = Gate(self._settings.queries_max, refusal)
        return self._gates[user]

    def take_bytes(self, user: str, many: int) -> None:
        """Take what a request sends; Overloaded if the user has sent too much before."""
        per_second = self._settings.bytes_per_second_max
        bucket = self._buckets.get(user)
        if bucket is None:
            bucket = self._buckets[user] = Bucket(per_second, self._clock)
        if wait_s := bucket.wait_s():
            raise _too_fast(user, per_second, wait_s)
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


def _too_many(user: str, most: int) -> Overloaded:
    return Overloaded(
        f"{user} has {most} queries in progress already",
        hint="wait for one of them, or raise access.queries_max in headrace.toml.",
    )


def _too_fast(user: str, per_second: int, wait_s: float) -> Overloaded:
    error = Overloaded(
        f"{user} sends more than {per_second:,} bytes a second",
        detail="nothing of this request was accepted.",
        hint="send it again after the time in Retry-After, or raise access.bytes_per_second_max.",
    )
    error.retry_after_s = math.ceil(wait_s)
    return error
