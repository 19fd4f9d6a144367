"""The balance of a stream, with its difference from zero."""

from __future__ import annotations

import msgspec
from msgspec.structs import force_setattr


class Balance(msgspec.Struct, frozen=True):
    """accepted = events + duplicates + dead letters + in the log + off; `off` must be zero."""

    accepted: int
    events: int
    duplicates: int
    dead_letters: int
    in_log: int  # accepted, not yet archived
    off: int = 0  # computed

    def __post_init__(self) -> None:
        placed = self.events + self.duplicates + self.dead_letters + self.in_log
        force_setattr(self, "off", self.accepted - placed)
