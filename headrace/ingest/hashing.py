"""Ids and bodies as 64 bits each: SipHash with a key of the stream's own, many in one call.

The key is secret, so no producer can construct a second id or body with the same hash; it is kept
with the index, so the hashes mean the same after a restart. Ids of different kinds differ: a number
is hashed with a byte before it that no text has. tests/ingest/test_hashing.py checks it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.ingest.fields import Value

Hashes = NDArray[np.uint64]
KEY_CHARACTERS = 16


@dataclass(frozen=True, slots=True, eq=False)
class RecordHashes:
    """The records of one request that have an id: their places in it, and two hashes of each."""

    size: int
    places: Sequence[int]
    ids: Hashes
    bodies: Hashes

    def ids_at(self, places: Collection[int]) -> Hashes:
        """The hashes of the ids of some records, of those that have one."""
        if not places:
            return self.ids[:0]
        wanted = np.isin(np.fromiter(self.places, np.int64, len(self.places)), list(places))
        return self.ids[wanted]


def hash_records(ids: Sequence[Value], records: Sequence[bytes], key: str) -> RecordHashes:
    """
    >>> found = hash_records(["a", None, "a", 1], [b"x", b"x", b"y", b"x"], "k" * 16)
    >>> list(found.places), len(set(found.ids.tolist())), len(set(found.bodies.tolist()))
    ([0, 2, 3], 2, 2)
    """
    places: Sequence[int] = range(len(ids))
    size = len(ids)
    if None in ids:
        places = [place for place in places if ids[place] is not None]
        ids, records = [ids[place] for place in places], [records[place] for place in places]
    texts = ids if set(map(type, ids)) <= {str} else [_bytes(identity) for identity in ids]
    made = _hashed([*texts, *records], key)  # type: ignore[list-item]
    return RecordHashes(size, places, made[: len(places)], made[len(places) :])


def _bytes(identity: Value) -> str | bytes:
    if isinstance(identity, str):
        return identity
    return b"\xff" + (identity if isinstance(identity, bytes) else str(identity).encode())


def _hashed(values: list[str | bytes], key: str) -> Hashes:
    # Imported here, because only a stream with an id needs it.
    from pandas.util import hash_array

    array = np.empty(len(values), object)
    array[:] = values
    try:
        hashes: Hashes = hash_array(array, hash_key=key, categorize=False)
    except UnicodeEncodeError:  # a lone surrogate, which JSON can have and UTF-8 cannot
        array[:] = [v.encode("utf-8", "surrogatepass") if isinstance(v, str) else v for v in values]
        hashes = hash_array(array, hash_key=key, categorize=False)
    return hashes
