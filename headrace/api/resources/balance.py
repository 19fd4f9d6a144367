"""The balance of a stream, with its difference from zero."""

from __future__ import annotations

import msgspec


class BalanceReport(msgspec.Struct, frozen=True):
    """accepted = events + duplicates + dead letters + in the log + off; `off` must be zero."""

    accepted: int
    events: int
    duplicates: int
    dead_letters: int
    in_log: int
    off: int
