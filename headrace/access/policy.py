"""How long sessions and tokens are valid, and how often an address may fail to authenticate."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.core.time import DAY, HOUR


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    session_life_us: int = 12 * HOUR
    session_idle_us: int = HOUR  # a session without a request for so long ends
    token_life_max_us: int = 365 * DAY
    failures_max: int = 30  # of one address in a minute


DEFAULT_POLICY = AccessPolicy()
