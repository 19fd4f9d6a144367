"""Which partition a record goes to.

The same key goes to the same partition, in every process and at all times, so that its events keep
their order: the partition is the CRC-32 of the key modulo their number. A record whose key cannot
be read goes by its own bytes. Without a declared key whole requests take turns, in chunks.
tests/ingest/test_partitions.py holds the numbers of some keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from zlib import crc32

from headrace.ingest.fields import Value

# A request without keys is one block in one partition, until it has more records than this.
_CHUNK_RECORDS = 5_000
# Keys repeat, and a lookup costs a tenth of encoding and summing a key.
_KEYS_MAX, _KEY_CHARACTERS_MAX = 65_536, 100

Share = tuple[int, Sequence[int]]  # a partition, and the places of its records in the request


def partition_of(key: Value, record: bytes, partitions: int) -> int:
    """The partition of one record.

    >>> partition_of("ada", b"", 4), partition_of(17, b"", 4)
    (0, 2)
    """
    if key is None:
        return crc32(record) % partitions
    return crc32(key if isinstance(key, bytes) else str(key).encode()) % partitions


class _KnownPartitions(dict[str | int | bytes, int]):
    """The partitions of the keys that came last."""

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions

    def __missing__(self, key: str | int | bytes) -> int:
        partition = partition_of(key, b"", self._partitions)
        if isinstance(key, int) or len(key) <= _KEY_CHARACTERS_MAX:
            if len(self) >= _KEYS_MAX:
                self.clear()
            self[key] = partition
        return partition


class Partitioner:
    """Shares the records of requests among partitions; calls come one at a time."""

    def __init__(self, partitions: int) -> None:
        self._partitions, self._known = partitions, _KnownPartitions(partitions)
        self._turn = count()

    def share(self, keys: Sequence[Value], records: Sequence[bytes]) -> list[Share]:
        """The records of each partition, by their place; no partition without any."""
        if self._partitions == 1 and records:
            return [(0, range(len(records)))]
        return self._by_key(keys, records) if keys else self._by_turn(len(records))

    def _by_key(self, keys: Sequence[Value], records: Sequence[bytes]) -> list[Share]:
        places: list[list[int]] = [[] for _ in range(self._partitions)]
        known = self._known
        for place, key in enumerate(keys):
            if key is None:
                places[partition_of(None, records[place], self._partitions)].append(place)
            else:
                places[known[key]].append(place)
        return [(partition, own) for partition, own in enumerate(places) if own]

    def _by_turn(self, size: int) -> list[Share]:
        starts = range(0, size, _CHUNK_RECORDS)
        return [
            (next(self._turn) % self._partitions, range(start, min(start + _CHUNK_RECORDS, size)))
            for start in starts
        ]
