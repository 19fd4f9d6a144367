"""Which partition a record goes to.

The same key goes to the same partition, in every process and at all times, so that its events keep
their order: the partition is the CRC-32 of the key modulo their number. A record whose key cannot
be read goes by its own bytes. Without a declared key whole requests take turns, in chunks.
tests/ingest/test_partitions.py holds the numbers of some keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import cast
from zlib import crc32

import numpy as np

from headrace.ingest.fields import Value

# A request without keys is one block in one partition, until it has more records than this.
_CHUNK_RECORDS = 5_000

Share = tuple[int, Sequence[int]]  # a partition, and the places of its records in the request


def partition_of(key: Value, record: bytes, partitions: int) -> int:
    """The partition of one record.

    >>> partition_of("ada", b"", 4), partition_of(17, b"", 4)
    (0, 2)
    """
    if key is None:
        return crc32(record) % partitions
    return crc32(key if isinstance(key, bytes) else str(key).encode()) % partitions


class Partitioner:
    """Shares the records of requests among partitions; calls come one at a time."""

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions
        self._turn = count()

    def share(self, keys: Sequence[Value], records: Sequence[bytes]) -> list[Share]:
        """The records of each partition, by their place; no partition without any."""
        if self._partitions == 1 and records:
            return [(0, range(len(records)))]
        return self._by_key(keys, records) if keys else self._by_turn(len(records))

    def _by_key(self, keys: Sequence[Value], records: Sequence[bytes]) -> list[Share]:
        if set(map(type, keys)) == {str}:  # as nearly always: the same in a third of the time
            texts = cast(Sequence[str], keys)
            crcs = np.fromiter(map(crc32, map(str.encode, texts)), np.uint32, len(keys))
            found = crcs % self._partitions
        else:
            pairs = zip(keys, records, strict=True)
            chosen = (partition_of(key, record, self._partitions) for key, record in pairs)
            found = np.fromiter(chosen, np.uint32, len(keys))
        shares = ((n, np.flatnonzero(found == n).tolist()) for n in range(self._partitions))
        return [(partition, own) for partition, own in shares if own]

    def _by_turn(self, size: int) -> list[Share]:
        starts = range(0, size, _CHUNK_RECORDS)
        return [
            (next(self._turn) % self._partitions, range(start, min(start + _CHUNK_RECORDS, size)))
            for start in starts
        ]
