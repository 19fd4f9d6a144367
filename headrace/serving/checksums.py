"""The checksum of each row of the store that holds bytes: a run, the rows of a table, a state.

Neither SQLite nor PostgreSQL notices a flipped bit in them, so every reader compares the checksum
before it decodes the bytes. Damage is CorruptStore, and never a wrong answer.
tests/serving/test_damage.py flips bits for each reader.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import msgspec

from headrace.core.errors import CorruptStore

REMEDY = (
    "move it away and start the project: answers are computed again from the master; "
    "acknowledgements, and rules that were added to the running project, are lost."
)


def checksum_of(place: Sequence[object], data: bytes) -> int:
    """The checksum of the bytes of a row, and of the columns by which they are found."""
    return crc32(data, crc32(msgspec.json.encode(place)))


def check(checksum: int | None, place: Sequence[object], data: bytes, what: str) -> None:
    """CorruptStore unless the checksum of a row matches."""
    if checksum != checksum_of(place, data):
        raise CorruptStore(
            f"the store is damaged: the checksum of {what} does not match",
            detail="nothing is computed from it.",
            hint=f"restore a backup; or {REMEDY}",
        )
